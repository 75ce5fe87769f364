//! The paper's measurements, and how this planner replays them.
#![allow(dead_code, reason = "shared by a test and an example that use different parts")]

pub mod data;
pub mod machine;
pub mod replay;

use planner::ModelShape;

const MODELS: [(&str, &str); 4] = [
    ("nemo-4b", include_str!("../../models/nemo-4b-f16.toml")),
    ("nemo-8b", include_str!("../../models/nemo-8b-f16.toml")),
    ("qwen-30b", include_str!("../../models/qwen3-30b-a3b-q4_0.toml")),
    ("qwen-235b", include_str!("../../models/qwen3-235b-a22b-q2_k.toml")),
];

/// A model of the paper by the paper's name.
pub fn model(name: &str) -> ModelShape {
    let (_, text) = MODELS.iter().find(|(known, _)| *known == name).expect("one of the four");
    ModelShape::from_toml(text).expect("the file is checked")
}

/// Names of the four models.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}
