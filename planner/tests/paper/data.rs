//! The tables as rows.

/// One run with whole layers on the GPU.
#[derive(Debug, Clone)]
pub struct Baseline {
    pub model: String,
    pub n_ctx: u32,
    /// The authors' budget in 10⁶ bytes.
    pub vram_mb: u32,
    pub n_ubatch: u32,
    pub ngl: u32,
    pub n_prompt: u32,
    pub n_gen: u32,
    pub ttft: f64,
    pub tps: f64,
}

/// One cell of Table 4.
#[derive(Debug, Clone)]
pub struct Cell {
    pub model: String,
    pub n_ctx: u32,
    pub vram_mib: u32,
    pub tps: f64,
    pub ttft: f64,
}

/// One bar of Figure 2.
#[derive(Debug, Clone)]
pub struct Gain {
    pub model: String,
    pub n_ctx: u32,
    pub vram_mib: u32,
    pub ttft: f64,
    pub tps: f64,
}

/// Whether parameters are fitted on a context, or only tested there.
pub fn is_training(n_ctx: u32) -> bool {
    n_ctx == 1024 || n_ctx == 16384
}

fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.skip(1).map(|line| line.split(',').collect())
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text} is a number"))
}

pub fn baseline() -> Vec<Baseline> {
    let of = |row: Vec<&str>| Baseline {
        model: row[0].into(),
        n_ctx: number(row[1]),
        vram_mb: number(row[2]),
        n_ubatch: number(row[3]),
        ngl: number(row[4]),
        n_prompt: number(row[5]),
        n_gen: number(row[6]),
        ttft: number(row[7]),
        tps: number(row[8]),
    };
    rows(include_str!("../data/paper/baseline.csv")).map(of).collect()
}

pub fn table4() -> Vec<Cell> {
    let of = |row: Vec<&str>| Cell {
        model: row[0].into(),
        n_ctx: number(row[1]),
        vram_mib: number(row[2]),
        tps: number(row[3]),
        ttft: number(row[4]),
    };
    rows(include_str!("../data/paper/table4.csv")).map(of).collect()
}

pub fn figure2() -> Vec<Gain> {
    let of = |row: Vec<&str>| Gain {
        model: row[0].into(),
        n_ctx: number(row[1]),
        vram_mib: number(row[2]),
        ttft: number(row[3]),
        tps: number(row[4]),
    };
    rows(include_str!("../data/paper/figure2.csv")).map(of).collect()
}

/// One cell of Table 5: a smaller machine, by the memory of its card.
#[derive(Debug, Clone)]
pub struct SmallCell {
    pub model: String,
    pub n_ctx: u32,
    pub card_gib: u32,
    pub tps: f64,
    pub ttft: f64,
}

pub fn table5() -> Vec<SmallCell> {
    let of = |row: Vec<&str>| SmallCell {
        model: row[0].into(),
        n_ctx: number(row[1]),
        card_gib: number(row[2]),
        tps: number(row[3]),
        ttft: number(row[4]),
    };
    rows(include_str!("../data/paper/table5.csv")).map(of).collect()
}

/// Tokens of the prompt of a Table 4 cell.
pub fn n_prompt(model: &str, n_ctx: u32) -> u32 {
    let [nemo, qwen] = match n_ctx {
        1024 => [908, 889],
        4096 => [4035, 3935],
        16384 => [16134, 15734],
        _ => [64530, 62930],
    };
    if model.starts_with("nemo") { nemo } else { qwen }
}

/// Tokens generated in a Table 4 cell, as far as known.
pub fn n_gen(model: &str, n_ctx: u32) -> u32 {
    match (model, n_ctx) {
        ("nemo-4b", 1024) => 74,
        ("nemo-8b", 1024) => 105,
        ("nemo-4b" | "nemo-8b", 4096) => 60,
        ("nemo-4b", 16384) => 200,
        ("nemo-8b", 16384) => 90,
        (_, 1024) => 134,
        (_, 4096) => 160,
        _ => 256,
    }
}
