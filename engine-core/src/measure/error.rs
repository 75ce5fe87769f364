//! Why a machine could not be measured.

use planner::{Format, ProfileError};
use thiserror::Error;

use crate::backend::BackendError;
use crate::sampler::SamplerError;

/// Why a machine could not be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// A device failed or refused.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The device does not compute with a format that was asked for.
    #[error("{device}: there is no arithmetic for {format}")]
    NoArithmetic {
        /// Name of the device.
        device: String,
        /// The format.
        format: Format,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
    /// A token could not be chosen.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The clock gave times that no machine has.
    #[error("the measured times make no sense: {0}")]
    Nonsense(#[from] ProfileError),
}
