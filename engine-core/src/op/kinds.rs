//! What ops there are, and what each computes.

use std::sync::Arc;

use super::View;

/// One operation. Inputs may not overlap outputs except where an op says that it works in place.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// Picks rows of a table.
    GatherRows(GatherRows),
    /// Puts rows into a table.
    ScatterRows(ScatterRows),
    /// Multiplies by a weight matrix.
    MatMul(MatMul),
    /// Normalises rows by their root mean square.
    RmsNorm(RmsNorm),
    /// Rotates pairs of values by position.
    Rope(Rope),
    /// Attends to KV cells.
    Attention(Attention),
    /// Gates one array by another.
    Glu(Glu),
    /// Adds one array to another.
    Add(Add),
    /// Adds a row to every row.
    AddBias(AddBias),
    /// Bounds values smoothly.
    SoftCap(SoftCap),
    /// Chooses experts for each token.
    RouteExperts(RouteExperts),
    /// Multiplies each row by the matrix of its expert.
    MatMulExperts(MatMulExperts),
    /// Sums the results of a token's experts.
    CombineExperts(CombineExperts),
}

/// `y[i] = table[rows[i]] · scale`, turned into f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GatherRows {
    /// `[n_rows, n]`, any format.
    pub table: View,
    /// `[1, m]` I32, each below `n_rows`.
    pub rows: View,
    /// `[m, n]` f32.
    pub y: View,
    /// Factor on every value; 1 for none.
    pub scale: f32,
}

/// `table[rows[i]] = x[i]`, turned into the table's format. Rows are distinct.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScatterRows {
    /// `[m, n]` f32.
    pub x: View,
    /// `[1, m]` I32, each below `n_rows`.
    pub rows: View,
    /// `[n_rows, n]` F32 or F16.
    pub table: View,
}

/// `y = x · wᵀ`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatMul {
    /// `[n_tokens, k]` f32.
    pub x: View,
    /// `[n, k]`, any format.
    pub w: View,
    /// `[n_tokens, n]` f32.
    pub y: View,
}

/// `y = x / sqrt(mean(x²) + eps) · (weight + weight_offset)`, row by row. `y` may be `x`.
///
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RmsNorm {
    /// `[n_rows, n]` f32.
    pub x: View,
    /// `[1, n]`, F32, F16 or BF16.
    pub weight: View,
    /// `[n_rows, n]` f32.
    pub y: View,
    /// Added to the mean square.
    pub eps: f32,
    /// 1 where the file stores weights as their difference from one, else 0.
    pub weight_offset: f32,
}

/// Which two values of a head form a rotated pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RopePairs {
    /// Values 2i and 2i + 1.
    Adjacent,
    /// Values i and i + n_rot / 2.
    Halves,
}

/// Rotates each pair `i` of every head in place by the angle `Σ over axes (position[axis] · inv_freq[axis][i])`.
///
/// Only the first `n_rot` values of a head are rotated, `n_rot` being twice the columns of `inv_freq`. Text has one
/// axis; pictures have three, and which pair turns with which axis is in `inv_freq`.
///
/// Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rope {
    /// `[n_tokens, n_head · head_dim]` f32, in place.
    pub x: View,
    /// `[n_tokens, 3]` I32: time, height, width. Axes beyond the rows of `inv_freq` are not read.
    pub positions: View,
    /// `[n_axes, n_rot / 2]` f32, radians per position.
    pub inv_freq: View,
    /// Values per head.
    pub head_dim: u32,
    /// Which values form a pair.
    pub pairs: RopePairs,
    /// Factor on the rotated values (the attention factor of YaRN); 1 for none.
    pub magnitude: f32,
}

/// Softmax attention of each token over the KV cells that it sees, with heads in groups.
///
/// Token `t` sees the cells `cells[start..end]`, with `[start, end] = spans[t]`, in the order of its sequence; its own
/// cell is the last. With a window, only the last `window` of them; those before may be any that hold finite numbers. So
/// the mask follows the order in the sequence and never a position's value. For head `h`, with
/// `g = h / (n_head / n_kv_head)`:
/// `out[t, h] = Σ_c softmax_c(cap(scale · q[t, h] · k[c, g])) · v[c, g]`, where `cap(s) = soft_cap · tanh(s / soft_cap)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attention {
    /// `[n_tokens, n_head · key_dim]` f32.
    pub q: View,
    /// `[n_cells, n_kv_head · key_dim]`, F16 or F32.
    pub k: View,
    /// `[n_cells, n_kv_head · value_dim]`, same format as `k`.
    pub v: View,
    /// `[1, n]` I32: cell numbers of all sequences in this pass, each sequence in order.
    pub cells: View,
    /// `[n_tokens, 2]` I32: where in `cells` the seen ones start and end.
    pub spans: View,
    /// `[n_tokens, n_head · value_dim]` f32.
    pub out: View,
    /// Heads of `q`; a multiple of `n_kv_head`.
    pub n_head: u32,
    /// Heads of `k` and `v`.
    pub n_kv_head: u32,
    /// Factor on each score.
    pub scale: f32,
    /// Bound on each score.
    pub soft_cap: Option<f32>,
    /// Most cells a token sees.
    pub window: Option<u32>,
}

/// The function on the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x / (1 + e⁻ˣ)`.
    Silu,
    /// `x · Φ(x)` by its tanh approximation. Source: Hendrycks and Gimpel, 2016.
    GeluTanh,
}

/// `y = activation(gate) · up`, value by value. `y` may be `gate` or `up`.
///
/// Source: Shazeer, "GLU Variants Improve Transformer", 2020.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glu {
    /// `[n_rows, n]` f32.
    pub gate: View,
    /// `[n_rows, n]` f32.
    pub up: View,
    /// `[n_rows, n]` f32.
    pub y: View,
    /// The function on the gate.
    pub activation: Activation,
}

/// `y += x`, value by value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Add {
    /// `[n_rows, n]` f32.
    pub x: View,
    /// `[n_rows, n]` f32, in place.
    pub y: View,
}

/// `y[i] += bias`, row by row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AddBias {
    /// `[1, n]`, F32, F16 or BF16.
    pub bias: View,
    /// `[n_rows, n]` f32, in place.
    pub y: View,
}

/// `y = cap · tanh(y / cap)`, value by value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftCap {
    /// `[n_rows, n]` f32, in place.
    pub y: View,
    /// The bound.
    pub cap: f32,
}

/// For each token: softmax over all experts, then the `n_used` largest, best first; equal ones by lower number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouteExperts {
    /// `[n_tokens, n_expert]` f32.
    pub logits: View,
    /// `[n_tokens, n_used]` I32: the chosen experts.
    pub experts: View,
    /// `[n_tokens, n_used]` f32: their shares.
    pub shares: View,
    /// Whether a token's shares are scaled so that they sum to 1.
    pub normalise: bool,
}

/// `y[t, j] = x[t, j] · w[experts[t, j]]ᵀ`.
#[derive(Debug, Clone, PartialEq)]
pub struct MatMulExperts {
    /// `[n_tokens, k]` f32, one row for all experts of a token, or `[n_tokens · n_used, k]`, a row each.
    pub x: View,
    /// One `[n, k]` matrix per expert, all of one format.
    pub w: Arc<[View]>,
    /// `[n_tokens, n_used]` I32.
    pub experts: View,
    /// `[n_tokens · n_used, n]` f32.
    pub y: View,
}

/// `y[t] = Σ_j shares[t, j] · x[t, j]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CombineExperts {
    /// `[n_tokens · n_used, n]` f32.
    pub x: View,
    /// `[n_tokens, n_used]` f32.
    pub shares: View,
    /// `[n_tokens, n]` f32.
    pub y: View,
}
