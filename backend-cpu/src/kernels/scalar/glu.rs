//! Functions of single values.

use engine_core::op::Activation;

/// `y = activation(gate) · y`.
///
/// # Panics
/// If lengths differ.
pub fn glu(activation: Activation, gate: &[f32], y: &mut [f32]) {
    assert_eq!(gate.len(), y.len(), "a gate for each value");
    let activate = match activation {
        Activation::Silu => silu,
        Activation::GeluTanh => gelu_tanh,
    };
    for (y, &gate) in y.iter_mut().zip(gate) {
        *y *= activate(gate);
    }
}

/// `y = cap · tanh(y / cap)`.
pub fn soft_cap(y: &mut [f32], cap: f32) {
    y.iter_mut().for_each(|y| *y = cap * (*y / cap).tanh());
}

fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

fn gelu_tanh(x: f32) -> f32 {
    let root = std::f32::consts::FRAC_2_PI.sqrt();
    0.5 * x * (1.0 + (root * (x + 0.044715 * x * x * x)).tanh())
}
