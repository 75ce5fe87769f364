//! Functions of single values.

use engine_core::op::Activation;

use super::Vector;
use super::math::{Function, exp, map, tanh};

#[inline(always)]
pub(crate) fn glu<U: Vector>(unit: U, activation: Activation, gate: &[f32], y: &mut [f32]) {
    match activation {
        Activation::Silu => gate_by(unit, Silu, gate, y),
        Activation::GeluTanh => gate_by(unit, GeluTanh, gate, y),
    }
}

#[inline(always)]
pub(crate) fn soft_cap<U: Vector>(unit: U, y: &mut [f32], cap: f32) {
    map(unit, SoftCap(cap), y);
}

#[inline(always)]
fn gate_by<U: Vector>(unit: U, activation: impl Function, gate: &[f32], y: &mut [f32]) {
    assert_eq!(gate.len(), y.len(), "a gate for each value");
    let gates = gate.chunks_exact(U::LANES);
    let rest_of_gate = gates.remainder();
    let mut ys = y.chunks_exact_mut(U::LANES);
    for (y, gate) in ys.by_ref().zip(gates) {
        unit.store(unit.mul(activation.at(unit, unit.load(gate)), unit.load(y)), y);
    }
    let rest = ys.into_remainder();
    if !rest.is_empty() {
        let gate = unit.load_some(rest_of_gate, 0.0);
        let y = unit.mul(activation.at(unit, gate), unit.load_some(rest, 0.0));
        unit.store_some(y, rest);
    }
}

#[derive(Clone, Copy)]
struct Silu;

impl Function for Silu {
    #[inline(always)]
    fn at<U: Vector>(self, unit: U, x: U::V) -> U::V {
        times_sigmoid(unit, x, x)
    }
}

#[derive(Clone, Copy)]
struct GeluTanh;

impl Function for GeluTanh {
    #[inline(always)]
    fn at<U: Vector>(self, unit: U, x: U::V) -> U::V {
        // (1 + tanh u) / 2 is the sigmoid of 2 u, which loses nothing where u is very negative.
        let two_root = 2.0 * std::f32::consts::FRAC_2_PI.sqrt();
        let square = unit.mul(x, x);
        let inner = unit.mul_add(square, unit.splat(0.044715 * two_root), unit.splat(two_root));
        times_sigmoid(unit, x, unit.mul(x, inner))
    }
}

/// `x / (1 + e⁻ᵘ)`.
#[inline(always)]
fn times_sigmoid<U: Vector>(unit: U, x: U::V, u: U::V) -> U::V {
    let e = exp(unit, unit.sub(unit.splat(0.0), u));
    unit.div(x, unit.add(unit.splat(1.0), e))
}

/// Bounds values by this.
#[derive(Clone, Copy)]
pub(super) struct SoftCap(pub(super) f32);

impl Function for SoftCap {
    #[inline(always)]
    fn at<U: Vector>(self, unit: U, x: U::V) -> U::V {
        let cap = unit.splat(self.0);
        unit.mul(cap, tanh(unit, unit.div(x, cap)))
    }
}
