//! Builds the devices that an engine runs on. The only file that names them.

use std::num::NonZeroUsize;

use backend_cpu::{CpuBackend, CpuOptions, Isa, KernelTable};
use engine_core::backend::Backends;

use crate::args::DeviceArgs;
use crate::failure::Failure;
use crate::settings::UsageError;

/// The devices as the user wants them.
pub(crate) fn backends(args: &DeviceArgs) -> Result<Backends, Failure> {
    backends_of(cpu_options(args)?)
}

/// The same, and what computes in them.
pub(crate) fn described(args: &DeviceArgs) -> Result<(Backends, Description), Failure> {
    let options = cpu_options(args)?;
    let (threads, isa) = (options.threads, options.kernels.isa().to_string());
    Ok((backends_of(options)?, Description { threads, isa }))
}

/// What computes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Description {
    /// Threads of the CPU.
    pub(crate) threads: NonZeroUsize,
    /// Instruction set of its kernels.
    pub(crate) isa: String,
}

fn cpu_options(args: &DeviceArgs) -> Result<CpuOptions, UsageError> {
    let mut options = CpuOptions::default();
    if let Some(threads) = args.threads {
        options.threads = threads;
    }
    if let Some(name) = &args.isa {
        options.kernels = kernels(name)?;
    }
    Ok(options)
}

fn backends_of(cpu: CpuOptions) -> Result<Backends, Failure> {
    Ok(Backends::cpu_only(CpuBackend::new(cpu).map_err(Failure::input)?))
}

/// The kernels of the instruction set of that name.
fn kernels(name: &str) -> Result<KernelTable, UsageError> {
    let plain = |name: &str| name.to_lowercase().replace(['-', ' '], "");
    match Isa::ALL.iter().find(|isa| plain(&isa.to_string()) == plain(name)) {
        Some(&isa) => KernelTable::for_isa(isa).ok_or(UsageError::NoIsa { name: isa.to_string() }),
        None => {
            let known: Vec<String> = Isa::ALL.iter().map(ToString::to_string).collect();
            Err(UsageError::UnknownIsa { name: name.to_owned(), known: known.join(", ") })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instruction_set_goes_by_its_name() {
        assert_eq!(
            kernels("Scalar").expect("every CPU has it"),
            kernels("scalar").expect("the same")
        );
        let error = kernels("avx9").expect_err("unknown").to_string();
        assert!(error.contains("known: scalar"), "{error}");
    }
}
