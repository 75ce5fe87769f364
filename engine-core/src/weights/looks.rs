//! Guesses what a file is by its first bytes, for messages about files that are not what was expected.

use std::fmt;

/// What a file looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Looks {
    /// A GGUF model file.
    Gguf,
    /// A model file of llama.cpp from before GGUF.
    Ggml,
    /// A safetensors file.
    Safetensors,
    /// A ZIP archive, which is what PyTorch writes.
    Zip,
    /// A Python pickle, which is what old PyTorch wrote.
    Pickle,
    /// A web page.
    Html,
    /// The stand-in that Git LFS leaves for a file not fetched.
    GitLfsPointer,
    /// JSON text.
    Json,
    /// A file of zeros.
    Zeros,
    /// A file without bytes.
    Empty,
    /// None of these.
    Unknown,
}

impl Looks {
    /// How many bytes from the start of a file are enough.
    pub const HEAD_BYTES: usize = 4096;

    /// Judges by the first bytes of a file.
    pub fn of(file: &[u8]) -> Looks {
        let head = &file[..file.len().min(Looks::HEAD_BYTES)];
        let text = head.trim_ascii_start();
        let tag = |prefix: &str| {
            text.get(..prefix.len()).is_some_and(|t| t.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        match head {
            [b'G', b'G', b'U', b'F', ..] => Looks::Gguf,
            [] => Looks::Empty,
            // The header's length, then the header. Before the others, since some lengths look like their magics.
            [_, _, _, _, _, 0, 0, 0, b'{', ..] => Looks::Safetensors,
            // The old magics are 32-bit numbers, stored least significant byte first.
            [b'l' | b't' | b'a', b'm' | b'j', b'g', b'g', ..] | [b'f', b'm', b'g', b'g', ..] => {
                Looks::Ggml
            }
            [b'P', b'K', 3, 4, ..] => Looks::Zip,
            [0x80, 2..=5, ..] => Looks::Pickle,
            _ if head.starts_with(b"version https://git-lfs") => Looks::GitLfsPointer,
            _ if tag("<!doctype") || tag("<html") || tag("<?xml") => Looks::Html,
            _ if text.first() == Some(&b'{') => Looks::Json,
            _ if head.iter().all(|&byte| byte == 0) => Looks::Zeros,
            _ => Looks::Unknown,
        }
    }

    /// What to do about it, as the end of a message; empty when there is nothing special to say.
    pub fn advice(self) -> &'static str {
        match self {
            Looks::Ggml => "; fetch the model as GGUF",
            Looks::Safetensors => "; give the folder that holds it, with its config.json",
            Looks::Zip | Looks::Pickle => "; fetch the model as GGUF or safetensors",
            Looks::Html => "; the download link led to a page: fetch the file itself",
            Looks::GitLfsPointer => "; run `git lfs pull` where it came from",
            Looks::Json => "; give the model file, or the folder of a checkpoint",
            Looks::Zeros => "; the download is not finished: fetch it again",
            Looks::Empty => "; fetch it again",
            Looks::Gguf | Looks::Unknown => "",
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Looks::Gguf => "a GGUF file",
            Looks::Ggml => "a model file from before GGUF",
            Looks::Safetensors => "a safetensors file",
            Looks::Zip => "a ZIP archive (PyTorch writes those)",
            Looks::Pickle => "a Python pickle (old PyTorch wrote those)",
            Looks::Html => "a web page",
            Looks::GitLfsPointer => "a Git LFS pointer",
            Looks::Json => "JSON text",
            Looks::Zeros => "a file of zeros",
            Looks::Empty => "an empty file",
            Looks::Unknown => "nothing known",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell() {
        let cases: &[(&[u8], Looks)] = &[
            (b"GGUF\x03\0\0\0", Looks::Gguf),
            (b"tjgg\x01\0\0\0", Looks::Ggml),
            (b"lmgg", Looks::Ggml),
            (b"PK\x03\x04rest", Looks::Zip),
            (b"\x80\x02}q\0", Looks::Pickle),
            (b"\x40\0\0\0\0\0\0\0{\"a\":", Looks::Safetensors),
            (b"\n<!DOCTYPE html><html>", Looks::Html),
            (b"version https://git-lfs.github.com/spec/v1\n", Looks::GitLfsPointer),
            (b"{\"architectures\": []}", Looks::Json),
            (&[0; 5000], Looks::Zeros),
            (b"hello", Looks::Unknown),
            (b"", Looks::Empty),
            (b"\x80\x02\0\0\0\0\0\0{", Looks::Safetensors),
            (b"GGUF\x03\0\0\0{\0\0\0", Looks::Gguf),
        ];
        for (bytes, looks) in cases {
            assert_eq!(Looks::of(bytes), *looks);
        }
    }
}
