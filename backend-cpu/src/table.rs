//! Which instruction sets this CPU has, and the kernels of one of them behind safe calls.

use std::fmt;

use engine_core::op::{Activation, RopePairs};
use half::f16;

use crate::kernels::activations::{Activations, Q8Block};
use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
use crate::kernels::heads::Share;
use crate::kernels::scalar;
#[cfg(target_arch = "x86_64")]
use crate::kernels::{avx2, avx512};

/// An instruction set that there are kernels for.
///
/// The kernels of AVX2 have run on hardware. Those of AVX-VNNI and of AVX-512 have passed this crate's tests in an emulated
/// CPU (Bochs, built after release 3.0): their results are right there, and their speed is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// What every CPU of the build's target has.
    Scalar,
    /// AVX2 with FMA and F16C: x86 since 2013.
    Avx2,
    /// AVX2 and products of bytes: PC processors since 2021.
    AvxVnni,
    /// AVX-512 F and BW: workstations since 2017.
    Avx512,
    /// AVX-512 and products of bytes.
    Avx512Vnni,
}

impl Isa {
    /// All of them, the most capable last.
    pub const ALL: &[Isa] = &[Isa::Scalar, Isa::Avx2, Isa::AvxVnni, Isa::Avx512, Isa::Avx512Vnni];

    #[cfg(target_arch = "x86_64")]
    fn is_detected(self) -> bool {
        match self {
            Isa::Scalar => true,
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            Isa::AvxVnni => Isa::Avx2.is_detected() && is_x86_feature_detected!("avxvnni"),
            Isa::Avx512 => {
                Isa::Avx2.is_detected()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
            }
            Isa::Avx512Vnni => Isa::Avx512.is_detected() && is_x86_feature_detected!("avx512vnni"),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_detected(self) -> bool {
        self == Isa::Scalar
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "AVX2",
            Isa::AvxVnni => "AVX-VNNI",
            Isa::Avx512 => "AVX-512",
            Isa::Avx512Vnni => "AVX-512 VNNI",
        })
    }
}

/// The kernels of one instruction set. Having a table is the proof that this CPU has the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelTable {
    isa: Isa,
}

/// Calls the kernel of a table's instruction set.
#[cfg(target_arch = "x86_64")]
macro_rules! call {
    ($table:expr, $module:ident::$kernel:ident($($arg:expr),*)) => {
        match $table.isa {
            Isa::Scalar => scalar::$module::$kernel($($arg),*),
            // SAFETY: a table of this instruction set is only made on a CPU that has it.
            Isa::Avx2 | Isa::AvxVnni => unsafe { avx2::$module::$kernel($($arg),*) },
            // SAFETY: as above.
            Isa::Avx512 | Isa::Avx512Vnni => unsafe { avx512::$module::$kernel($($arg),*) },
        }
    };
}

/// Calls the kernel of the only instruction set there can be a table of.
#[cfg(not(target_arch = "x86_64"))]
macro_rules! call {
    ($table:expr, $module:ident::$kernel:ident($($arg:expr),*)) => {
        scalar::$module::$kernel($($arg),*)
    };
}

impl KernelTable {
    /// The kernels for `isa`, or `None` when this CPU lacks it.
    pub fn for_isa(isa: Isa) -> Option<KernelTable> {
        isa.is_detected().then_some(KernelTable { isa })
    }

    /// The kernels for the most capable instruction set of this CPU.
    pub fn detect() -> KernelTable {
        let best = Isa::ALL.iter().rev().find_map(|&isa| KernelTable::for_isa(isa));
        best.expect("every CPU runs the scalar kernels")
    }

    /// The instruction set.
    pub fn isa(self) -> Isa {
        self.isa
    }

    /// See [`scalar::matmul::matmul`].
    pub fn matmul(
        self,
        w: WeightRows<'_>,
        x: Activations<'_>,
        tokens: TokenRows<'_>,
        y: &mut ColumnsMut<'_>,
    ) {
        match self.isa {
            // SAFETY: a table of this instruction set is only made on a CPU that has it.
            #[cfg(target_arch = "x86_64")]
            Isa::AvxVnni => unsafe { avx2::matmul::matmul_vnni(w, x, tokens, y) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512Vnni => unsafe { avx512::matmul::matmul_vnni(w, x, tokens, y) },
            _ => call!(self, matmul::matmul(w, x, tokens, y)),
        }
    }

    /// See [`scalar::quant::quantise`].
    pub fn quantise(self, x: &[f32], out: &mut [Q8Block]) {
        call!(self, quant::quantise(x, out));
    }

    /// See [`scalar::attention::attend`].
    pub fn attend(self, share: Share<'_>, partials: &mut [f32], scratch: &mut Vec<f32>) {
        call!(self, attention::attend(share, partials, scratch));
    }

    /// See [`scalar::attention::merge`].
    pub fn merge(self, value_dim: usize, partials: &[f32], into: &mut [f32]) {
        call!(self, attention::merge(value_dim, partials, into));
    }

    /// See [`scalar::norm::rms_norm`].
    pub fn rms_norm(self, x: &mut [f32], weight: &[f32], weight_offset: f32, eps: f32) {
        call!(self, norm::rms_norm(x, weight, weight_offset, eps));
    }

    /// See [`scalar::norm::softmax`].
    pub fn softmax(self, x: &mut [f32]) {
        call!(self, norm::softmax(x));
    }

    /// See [`scalar::rope::rotate`].
    pub fn rotate(self, head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs) {
        call!(self, rope::rotate(head, cos, sin, pairs));
    }

    /// See [`scalar::glu::glu`].
    pub fn glu(self, activation: Activation, gate: &[f32], y: &mut [f32]) {
        call!(self, glu::glu(activation, gate, y));
    }

    /// See [`scalar::glu::soft_cap`].
    pub fn soft_cap(self, y: &mut [f32], cap: f32) {
        call!(self, glu::soft_cap(y, cap));
    }

    /// See [`scalar::add::add_scaled`].
    pub fn add_scaled(self, factor: f32, x: &[f32], y: &mut [f32]) {
        call!(self, add::add_scaled(factor, x, y));
    }

    /// See [`scalar::add::scale`].
    pub fn scale(self, factor: f32, y: &mut [f32]) {
        call!(self, add::scale(factor, y));
    }

    /// See [`scalar::convert::to_f16`].
    pub fn to_f16(self, x: &[f32], y: &mut [f16]) {
        call!(self, convert::to_f16(x, y));
    }
}
