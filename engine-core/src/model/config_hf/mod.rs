//! Hyperparameters from a Hugging Face `config.json`.

mod keys;
mod read;
mod rope;
mod windows;

pub(super) use read::from_hf;
