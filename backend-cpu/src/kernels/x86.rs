//! What the vector units of x86-64 have in common: kernels that are written once become those of a unit here, compiled
//! with its target features. Must not know which units there are.

use std::arch::x86_64::{_MM_HINT_NTA, _MM_HINT_T0, _mm_prefetch};

use super::matmul::Reads;

/// Asks for the bytes at an address, which may be any, to come into cache; every x86-64 CPU can.
#[inline(always)]
pub(super) fn prefetch(address: usize, reads: Reads) {
    let at = std::ptr::without_provenance(address);
    // SAFETY: prefetching reads nothing that the program sees and does not fault.
    unsafe {
        match reads {
            Reads::Once => _mm_prefetch::<_MM_HINT_NTA>(at),
            Reads::Again => _mm_prefetch::<_MM_HINT_T0>(at),
        }
    }
}

/// Asks for all of `x` to come into cache, a line at a time.
#[inline(always)]
pub(super) fn prefetch_all<T>(x: &[T]) {
    for line in (0..size_of_val(x)).step_by(64) {
        prefetch(x.as_ptr().addr() + line, Reads::Again);
    }
}

/// Defines operations of a vector unit that are a few instructions on registers.
macro_rules! instructions {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $out:ty { $body:expr })*) => {
        $(#[inline(always)]
        fn $name(self, $($arg: $type),*) -> $out {
            // SAFETY: a unit is only made where its features are enabled.
            unsafe { $body }
        })*
    };
}

/// Gives a vector unit its ways into matrix products.
macro_rules! products {
    ($trait:ident::$product:ident($x:ty) of $format:ident: $($unit:ty, $features:literal;)*) => {
        $(impl $crate::kernels::matmul::$trait for $unit {
            fn $product<F: $crate::kernels::matmul::$format>(
                self,
                p: $crate::kernels::matmul::Product<'_, '_, $x>,
            ) {
                #[target_feature(enable = $features)]
                #[inline(never)]
                fn with_features<F: $crate::kernels::matmul::$format>(
                    unit: $unit,
                    p: $crate::kernels::matmul::Product<'_, '_, $x>,
                ) {
                    $crate::kernels::matmul::$product::<$unit, F>(unit, p);
                }
                // SAFETY: a unit is only made where its features are enabled.
                unsafe { with_features::<F>(self, p) }
            }
        })*
    };
}

/// Defines the kernels of a vector unit, in modules named like the scalar ones. `vnni` are the features that it is made
/// with by `with_vnni`.
macro_rules! kernels {
    ($unit:ident, $features:literal, vnni $vnni:literal) => {
        pub(crate) mod matmul {
            use super::$unit;
            use crate::kernels::activations::Activations;
            use crate::kernels::args::{ColumnsMut, TokenRows, WeightRows};
            use crate::kernels::matmul::{Product, dispatch, dispatch_floats};

            crate::kernels::x86::kernels! { @matmul matmul, $features, $unit::new(), $unit::new() }
            crate::kernels::x86::kernels! { @matmul matmul_vnni, $vnni, $unit::with_vnni(), $unit::new() }
        }

        crate::kernels::x86::kernels! { @vector $unit, $features;
            add {
                fn add_scaled(factor: f32, x: &[f32], y: &mut [f32]);
                fn scale(factor: f32, y: &mut [f32]);
            }
            attention {
                fn attend(share: Share<'_>, partials: &mut [f32], scratch: &mut Vec<f32>);
                fn merge(value_dim: usize, partials: &[f32], into: &mut [f32]);
            }
            convert {
                fn to_f16(x: &[f32], y: &mut [f16]);
            }
            glu {
                fn glu(activation: Activation, gate: &[f32], y: &mut [f32]);
                fn soft_cap(y: &mut [f32], cap: f32);
            }
            norm {
                fn rms_norm(x: &mut [f32], weight: &[f32], weight_offset: f32, eps: f32);
                fn softmax(x: &mut [f32]);
            }
            rope {
                fn rotate(head: &mut [f32], cos: &[f32], sin: &[f32], pairs: RopePairs);
            }
        }
    };
    (@matmul $name:ident, $features:literal, $unit:expr, $float_unit:expr) => {
        /// As [`scalar`](crate::kernels::scalar::matmul::matmul).
        #[target_feature(enable = $features)]
        pub(crate) fn $name(
            w: WeightRows<'_>,
            x: Activations<'_>,
            tokens: TokenRows<'_>,
            y: &mut ColumnsMut<'_>,
        ) {
            match x {
                Activations::Q8(x) => dispatch($unit, Product { w, x, tokens, y }),
                Activations::F32(x) => dispatch_floats($float_unit, Product { w, x, tokens, y }),
            }
        }
    };
    (@vector $unit:ident, $features:literal; $($module:ident {
        $(fn $name:ident($($arg:ident: $type:ty),*);)*
    })*) => {
        $(pub(crate) mod $module {
            #[allow(unused_imports, reason = "what the kernels of all modules take")]
            use {
                crate::kernels::heads::Share,
                engine_core::op::{Activation, RopePairs},
                half::f16,
            };
            $(
                #[doc = concat!(
                    "As [`scalar`](crate::kernels::scalar::", stringify!($module), "::", stringify!($name), ")."
                )]
                #[target_feature(enable = $features)]
                pub(crate) fn $name($($arg: $type),*) {
                    crate::kernels::vector::$name(super::$unit::new(), $($arg),*);
                }
            )*
        })*
    };
}

pub(super) use {instructions, kernels, products};
