//! Opens a GGUF model: one file, or all parts of a split one.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::super::parts::PartName;
use super::super::text::Listed;
use super::super::{
    DuplicateTensor, MapError, Metadata, TensorFault, TensorInfo, WeightFile, Weights, map_file,
};
use super::{GgufFault, GgufHeader};

/// An open GGUF model. The bytes of its tensors stay in the mapped files.
#[derive(Debug, Clone)]
pub struct Gguf {
    /// Version of the format: 2 or 3.
    pub version: u32,
    /// Metadata of the file, or of the first part.
    pub metadata: Metadata,
    /// Tensors of all parts.
    pub weights: Weights,
}

/// Why a GGUF model could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GgufError {
    /// A file could not be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A file's bytes are not what they should be.
    #[error("{}: {fault}", path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        fault: GgufFault,
    },
    /// A file that was cut into pieces of raw bytes, which have to be joined before anything can read them.
    #[error("{}: is a piece of a larger file; join all pieces with `cat` into one .gguf file", path.display())]
    RawPiece {
        /// The piece.
        path: PathBuf,
    },
    /// Some parts of a split model are not there.
    #[error(
        "{}: {} of {of} parts are missing: {}; fetch them into the same folder",
        folder.display(), missing.len(), Listed(missing)
    )]
    MissingParts {
        /// Where they were looked for.
        folder: PathBuf,
        /// Names of the missing files.
        missing: Vec<String>,
        /// How many parts there should be.
        of: u32,
    },
    /// A part of a split model whose name does not tell the names of the others.
    #[error(
        "{}: is part {number} of {of}; name all parts like NAME-{number:05}-of-{of:05}.gguf to open them",
        path.display()
    )]
    PartName {
        /// The file.
        path: PathBuf,
        /// Which part it says it is, from 1.
        number: u64,
        /// How many parts it says there are.
        of: u64,
    },
    /// A file whose name says another part than its metadata.
    #[error(
        "{}: is named as part {} of {}, but says that it is part {} of {}; give it its own name back",
        path.display(), named.0, named.1, found.0, found.1
    )]
    PartNumber {
        /// The file.
        path: PathBuf,
        /// Part and number of parts in its name.
        named: (u64, u64),
        /// Part and number of parts in its metadata.
        found: (u64, u64),
    },
    /// The parts together hold another number of tensors than the first one says.
    #[error(
        "{}: promises {promised} tensors in all parts, which hold {found}; fetch all parts from one place",
        path.display()
    )]
    TensorCount {
        /// The first part.
        path: PathBuf,
        /// How many it promises.
        promised: u64,
        /// How many all parts hold.
        found: u64,
    },
    /// A tensor in two parts.
    #[error(transparent)]
    DuplicateTensor(#[from] DuplicateTensor),
}

impl Gguf {
    /// Opens a GGUF file. Any part of a split model opens all of it; its parts must lie in one folder.
    ///
    /// # Errors
    /// If a file is missing, cannot be read, is damaged, or the parts do not belong together.
    pub fn open(path: &Path) -> Result<Gguf, GgufError> {
        let file_name = path.file_name().and_then(|name| name.to_str());
        match file_name.and_then(|name| PartName::parse(name, "gguf")) {
            Some(name) => open_parts(folder_of(path), &name),
            None => open_single(path),
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

fn open_single(path: &Path) -> Result<Gguf, GgufError> {
    let part = Part::open(path.to_owned())?;
    match part.place() {
        (_, 0..=1) => join(vec![part]),
        (number, of) => Err(GgufError::PartName { path: part.file.path, number, of }),
    }
}

fn open_parts(folder: &Path, name: &PartName) -> Result<Gguf, GgufError> {
    let missing: Vec<String> = name
        .all()
        .map(|part| part.to_string())
        .filter(|part| !folder.join(part).exists())
        .collect();
    if !missing.is_empty() {
        return Err(GgufError::MissingParts { folder: folder.to_owned(), missing, of: name.of });
    }
    let mut parts = Vec::new();
    for name in name.all() {
        let part = Part::open(folder.join(name.to_string()))?;
        let named = (name.number.into(), name.of.into());
        if part.place() != named {
            return Err(GgufError::PartNumber { named, found: part.place(), path: part.file.path });
        }
        parts.push(part);
    }
    join(parts)
}

/// One mapped file with its header.
struct Part {
    file: WeightFile,
    header: GgufHeader,
}

impl Part {
    fn open(path: PathBuf) -> Result<Part, GgufError> {
        let region = map_file(&path)?;
        match GgufHeader::parse(region.bytes()) {
            Ok(header) => Ok(Part { file: WeightFile { path, region }, header }),
            Err(GgufFault::Tensor(TensorFault::PastEnd { .. }) | GgufFault::Cut { .. })
                if is_raw_piece(&path) =>
            {
                Err(GgufError::RawPiece { path })
            }
            Err(fault) => Err(GgufError::Bad { path, fault }),
        }
    }

    /// Which part it says it is, from 1, and of how many. A file that does not say is the only one.
    fn place(&self) -> (u64, u64) {
        let number = self.integer("split.no").map_or(1, |from_zero| from_zero.saturating_add(1));
        (number, self.integer("split.count").unwrap_or(1))
    }

    fn integer(&self, key: &str) -> Option<u64> {
        self.header.metadata.get(key)?.as_u64()
    }
}

/// Whether a cut file is named like the pieces that some repositories offer: `model.gguf-split-a`,
/// `model.gguf.part1of2`.
fn is_raw_piece(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split_once(".gguf").is_some_and(|(_, end)| end.contains("part") || end.contains("split"))
}

/// Makes one model of its parts, in order.
fn join(parts: Vec<Part>) -> Result<Gguf, GgufError> {
    let first = &parts[0];
    let promised = first.integer("split.tensors.count");
    let found = parts.iter().map(|part| part.header.tensors.len() as u64).sum();
    if let Some(promised) = promised.filter(|&promised| promised != found) {
        return Err(GgufError::TensorCount { path: first.file.path.clone(), promised, found });
    }
    let version = first.header.version;
    let mut metadata = None;
    let files: Vec<(WeightFile, Vec<TensorInfo>)> = parts
        .into_iter()
        .map(|Part { file, header }| {
            metadata.get_or_insert(header.metadata);
            (file, header.tensors)
        })
        .collect();
    let metadata = metadata.expect("a model has at least one part");
    Ok(Gguf { version, metadata, weights: Weights::new(files)? })
}
