//! Activations as the matrix products want them: f32 as they are, or 32 at a time as bytes with a scale.
//!
//! Owns the form and how to get it; must not know weight formats beyond which form they want.

use bytemuck::{Pod, Zeroable};
use engine_core::weights::DType;

/// Values that share a scale.
pub const BLOCK: usize = 32;

/// 32 activations: `x[i] ≈ scale · values[i]`.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Q8Block {
    /// In −127..=127, so that its negative is a byte too.
    pub values: [i8; BLOCK],
    /// The largest magnitude over a whole number of steps.
    pub scale: f32,
    /// Sum of `scale · values[i]`, for weights with a minimum. In f32: a half float would overflow.
    pub sum: f32,
    /// The same over each half, for weights with a minimum for each 16.
    pub half_sums: [f32; 2],
}

/// Rows of `width` items.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a, T> {
    items: &'a [T],
    width: usize,
}

impl<'a, T> Rows<'a, T> {
    /// Rows that fill `items`.
    ///
    /// # Panics
    /// If `width` is zero or `items` is not a whole number of rows.
    pub fn new(items: &'a [T], width: usize) -> Self {
        assert!(items.len().is_multiple_of(width), "whole rows of activations");
        Rows { items, width }
    }

    /// All rows, one after the other.
    pub fn items(&self) -> &'a [T] {
        self.items
    }

    /// Items in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One row.
    ///
    /// # Panics
    /// If there are not so many rows.
    pub fn row(&self, row: usize) -> &'a [T] {
        &self.items[row * self.width..][..self.width]
    }
}

/// The form in which a weight format multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Unrounded.
    F32,
    /// In [`Q8Block`]s.
    Q8,
}

impl Form {
    /// What weights of this format multiply with; `None` for a format without arithmetic.
    pub fn of(dtype: DType) -> Option<Form> {
        match dtype {
            DType::F32 | DType::F16 | DType::BF16 => Some(Form::F32),
            DType::Q4_0
            | DType::Q4_1
            | DType::Q5_0
            | DType::Q5_1
            | DType::Q8_0
            | DType::Q2_K
            | DType::Q3_K
            | DType::Q4_K
            | DType::Q5_K
            | DType::Q6_K
            | DType::IQ4_NL
            | DType::IQ4_XS
            | DType::MXFP4 => Some(Form::Q8),
            _ => None,
        }
    }
}

/// `[n_tokens, k]` activations in the form that the weights want.
#[derive(Debug, Clone, Copy)]
pub enum Activations<'a> {
    /// Rows of `k` values.
    F32(Rows<'a, f32>),
    /// Rows of `k / 32` blocks.
    Q8(Rows<'a, Q8Block>),
}
