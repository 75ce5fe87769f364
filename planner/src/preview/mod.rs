//! Forecasts that people and programs can read: a sweep over budgets and contexts as a table, one cell of it from near,
//! all of it as JSON, the plan of a cell as a picture.
//!
//! Text in, nothing out but text: files, terminals and flags are the business of whoever calls this.

mod describe;
mod json;
mod shape;
mod strip;
mod svg;
mod sweep;
mod table;
mod what_if;

pub use json::PREVIEW_SCHEMA;
pub use strip::plan_strip;
pub use sweep::{Cell, Outcome, Preview, Question, Sweep, usual_budgets};
pub use what_if::{Variation, WhatIf, what_if};
