//! Rotation frequencies: what base and scaling kind a model asks for, and the table they give.
//!
//! Follows the reference implementation's definition of every kind. Sources: Su et al. 2021 (rope); Chen et al. 2023
//! (linear); Peng et al. 2023 (YaRN, and NTK-aware scaling that grows with length); Ding et al. 2024 (LongRoPE); the
//! Llama 3.1 model card (its piecewise kind).

use std::f64::consts::PI;

/// Rotation of one kind of layer.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// Base of the geometric row of frequencies.
    pub base: f64,
    /// Rotated values per head; even.
    pub n_rot: u32,
    /// How frequencies are stretched beyond the trained length.
    pub scaling: RopeScaling,
}

/// How frequencies are stretched beyond the length the base model was trained on.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// All by one factor.
    Linear {
        /// Stretch.
        factor: f64,
    },
    /// Each by its own divisor, as stored in a file.
    Divisors(Vec<f32>),
    /// Low frequencies by a factor, high ones not at all, a ramp between.
    Llama3 {
        /// Stretch of low frequencies.
        factor: f64,
        /// Frequencies turning fewer times than this over the trained length are low.
        low_freq_factor: f64,
        /// Frequencies turning more times than this over the trained length are high.
        high_freq_factor: f64,
        /// Trained length.
        n_ctx_original: f64,
    },
    /// Like Llama3, with a linear ramp over dimensions and a factor on the rotated values.
    Yarn(Yarn),
    /// The base grows with the length of the sequence once that exceeds the trained one.
    Dynamic {
        /// Stretch.
        factor: f64,
        /// Trained length.
        n_ctx_original: f64,
    },
    /// One row of divisors up to the trained length, another beyond it.
    LongRope {
        /// Divisors up to the trained length.
        short: Vec<f32>,
        /// Divisors beyond it.
        long: Vec<f32>,
        /// Trained length.
        n_ctx_original: f64,
        /// Factor on the rotated values.
        magnitude: f64,
    },
}

/// Parameters of YaRN.
#[derive(Debug, Clone, PartialEq)]
pub struct Yarn {
    /// Stretch.
    pub factor: f64,
    /// Trained length.
    pub n_ctx_original: f64,
    /// Turns over the trained length above which a frequency is kept.
    pub beta_fast: f64,
    /// Turns over the trained length below which a frequency is stretched fully.
    pub beta_slow: f64,
    /// Whether the ends of the ramp are rounded to whole dimensions.
    pub truncate: bool,
    /// Factor on the rotated values.
    pub magnitude: f64,
}

impl Yarn {
    /// The usual magnitude for a stretch: `0.1 · ln(factor) + 1`.
    pub fn default_magnitude(factor: f64) -> f64 {
        if factor <= 1.0 { 1.0 } else { 0.1 * factor.ln() + 1.0 }
    }

    /// How much of each frequency is kept unstretched, from 1 (high frequencies) to 0.
    fn kept(&self, base: f64, n_rot: u32) -> impl Fn(usize) -> f64 {
        let dim = f64::from(n_rot);
        let dimension_of_turns =
            |turns: f64| dim * (self.n_ctx_original / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
        let (mut low, mut high) =
            (dimension_of_turns(self.beta_fast), dimension_of_turns(self.beta_slow));
        if self.truncate {
            (low, high) = (low.floor(), high.ceil());
        }
        let (low, mut high) = (low.max(0.0), high.min(dim - 1.0));
        if low == high {
            high += 0.001;
        }
        move |i| 1.0 - ((i as f64 - low) / (high - low)).clamp(0.0, 1.0)
    }
}

impl RopeConfig {
    /// Whether the table changes as a sequence grows.
    pub fn depends_on_length(&self) -> bool {
        matches!(self.scaling, RopeScaling::Dynamic { .. } | RopeScaling::LongRope { .. })
    }

    /// Factor on the rotated values.
    pub fn magnitude(&self) -> f32 {
        match &self.scaling {
            RopeScaling::Yarn(yarn) => yarn.magnitude as f32,
            RopeScaling::LongRope { magnitude, .. } => *magnitude as f32,
            RopeScaling::None
            | RopeScaling::Linear { .. }
            | RopeScaling::Divisors(_)
            | RopeScaling::Llama3 { .. }
            | RopeScaling::Dynamic { .. } => 1.0,
        }
    }

    /// Radians per position of each of the `n_rot / 2` pairs, for sequences of up to `length` tokens.
    pub fn inv_freq(&self, length: u32) -> Vec<f32> {
        let base = self.base_at(f64::from(length));
        let plain = (0..self.n_rot / 2)
            .map(|i| base.powf(-f64::from(2 * i) / f64::from(self.n_rot)))
            .collect::<Vec<_>>();
        let scaled: Vec<f64> = match &self.scaling {
            RopeScaling::None | RopeScaling::Dynamic { .. } => plain,
            RopeScaling::Linear { factor } => plain.iter().map(|f| f / factor).collect(),
            RopeScaling::Divisors(divisors) => divided(&plain, divisors),
            RopeScaling::Llama3 { factor, low_freq_factor, high_freq_factor, n_ctx_original } => {
                plain
                    .iter()
                    .map(|f| {
                        let turns = n_ctx_original * f / (2.0 * PI);
                        let kept = ((turns - low_freq_factor)
                            / (high_freq_factor - low_freq_factor))
                            .clamp(0.0, 1.0);
                        f * kept + f / factor * (1.0 - kept)
                    })
                    .collect()
            }
            RopeScaling::Yarn(yarn) => {
                let kept = yarn.kept(self.base, self.n_rot);
                plain
                    .iter()
                    .enumerate()
                    .map(|(i, f)| f * kept(i) + f / yarn.factor * (1.0 - kept(i)))
                    .collect()
            }
            RopeScaling::LongRope { short, long, n_ctx_original, .. } => {
                divided(&plain, if f64::from(length) > *n_ctx_original { long } else { short })
            }
        };
        scaled.into_iter().map(|f| f as f32).collect()
    }

    /// The base for sequences of `length` tokens.
    fn base_at(&self, length: f64) -> f64 {
        match self.scaling {
            RopeScaling::Dynamic { factor, n_ctx_original } if length > n_ctx_original => {
                let dim = f64::from(self.n_rot);
                let stretch = factor * length / n_ctx_original - (factor - 1.0);
                self.base * stretch.powf(dim / (dim - 2.0))
            }
            _ => self.base,
        }
    }
}

fn divided(frequencies: &[f64], divisors: &[f32]) -> Vec<f64> {
    frequencies.iter().zip(divisors).map(|(f, &d)| f / f64::from(d)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rope(scaling: RopeScaling) -> RopeConfig {
        RopeConfig { base: 10_000.0, n_rot: 8, scaling }
    }

    #[test]
    fn plain_and_linear() {
        assert_eq!(rope(RopeScaling::None).inv_freq(1), [1.0, 0.1, 0.01, 0.001]);
        let halved = rope(RopeScaling::Linear { factor: 2.0 }).inv_freq(1);
        assert_eq!(halved, [0.5, 0.05, 0.005, 0.0005]);
    }

    #[test]
    fn llama3_keeps_high_and_stretches_low() {
        let scaling = RopeScaling::Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            n_ctx_original: 1000.0,
        };
        let table = rope(scaling).inv_freq(1);
        assert_eq!(table[..2], [1.0, 0.1], "159 and 16 turns: kept");
        assert_eq!(table[3], 0.001 / 8.0, "0.16 turns: stretched");
        let kept = (1000.0 * 0.01 / (2.0 * PI) - 1.0) / 3.0;
        let between = 0.01 * kept + 0.01 / 8.0 * (1.0 - kept);
        assert!((f64::from(table[2]) - between).abs() < 1e-9);
    }

    #[test]
    fn dynamic_grows_only_past_the_trained_length() {
        let config = rope(RopeScaling::Dynamic { factor: 2.0, n_ctx_original: 100.0 });
        assert_eq!(config.inv_freq(100), rope(RopeScaling::None).inv_freq(1));
        // Base 10000 · (2 · 200 / 100 − 1)^(8/6).
        let base: f64 = 10_000.0 * 3f64.powf(8.0 / 6.0);
        assert!((f64::from(config.inv_freq(200)[1]) - base.powf(-0.25)).abs() < 1e-7);
    }

    #[test]
    fn longrope_switches_rows() {
        let config = rope(RopeScaling::LongRope {
            short: vec![1.0; 4],
            long: vec![2.0; 4],
            n_ctx_original: 10.0,
            magnitude: 1.2,
        });
        assert_eq!((config.inv_freq(10)[0], config.inv_freq(11)[0]), (1.0, 0.5));
        assert_eq!(config.magnitude(), 1.2);
    }

    #[test]
    fn yarn_ramps_between_its_ends() {
        let yarn = Yarn {
            factor: 4.0,
            n_ctx_original: 4096.0,
            beta_fast: 32.0,
            beta_slow: 1.0,
            truncate: true,
            magnitude: Yarn::default_magnitude(4.0),
        };
        let config = RopeConfig { base: 10_000.0, n_rot: 128, scaling: RopeScaling::Yarn(yarn) };
        let (table, plain) = (config.inv_freq(1), rope_of_128().inv_freq(1));
        assert_eq!(table[0], plain[0], "the fastest is kept");
        assert_eq!(table[63], plain[63] / 4.0, "the slowest is stretched");
        assert!(table.windows(2).all(|pair| pair[0] > pair[1]));
        assert!((config.magnitude() - 1.138_629_4).abs() < 1e-6);
    }

    fn rope_of_128() -> RopeConfig {
        RopeConfig { base: 10_000.0, n_rot: 128, scaling: RopeScaling::None }
    }
}
