//! What a machine can do: a short table for people, everything for programs.

use std::io::{self, Write};
use std::path::Path;

use engine_core::measure::Noisy;
use planner::{
    AttentionPoint, AttentionTimes, BytesPerSec, GpuProfile, Kernels, Link, MachineProfile,
    ProductKind, ProductPoint, ProductTimes, Seconds,
};
use serde::Serialize;

use super::table;

/// Noisy figures that are named one by one.
const NAMED: usize = 5;

/// A machine that was measured, and where its profile lies.
#[derive(Debug)]
pub(crate) struct ProfileReport<'a> {
    pub(crate) path: &'a Path,
    pub(crate) profile: &'a MachineProfile,
    pub(crate) noisy: &'a [Noisy],
}

/// The same for JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ProfileJson<'a> {
    path: String,
    profile: &'a MachineProfile,
    noisy: Vec<NoisyJson>,
}

#[derive(Debug, Serialize)]
struct NoisyJson {
    figure: String,
    spread: f64,
}

impl<'a> ProfileReport<'a> {
    /// For people.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let MachineProfile { name, provenance, cpu, gpu, pass, .. } = self.profile;
        writeln!(out, "{name}, {} threads, {} of memory at {}", cpu.threads, cpu.ram, cpu.dram)?;
        writeln!(out, "{:.0} µs a pass", us(*pass))?;
        print_kernels(out, &cpu.kernels)?;
        if let Some(GpuProfile { name, vram, driver, link, kernels }) = gpu {
            writeln!(out, "\n{name}, {vram} of memory, {driver} of it taken by the driver")?;
            print_link(out, link)?;
            print_kernels(out, kernels)?;
        }
        writeln!(out, "\n{provenance}\n{}", self.path.display())
    }

    /// For programs.
    pub(crate) fn json(&self) -> ProfileJson<'a> {
        let noisy =
            |noisy: &Noisy| NoisyJson { figure: noisy.figure.to_string(), spread: noisy.spread };
        ProfileJson {
            path: self.path.display().to_string(),
            profile: self.profile,
            noisy: self.noisy.iter().map(noisy).collect(),
        }
    }

    /// What the user should know before trusting the figures.
    pub(crate) fn warning(&self) -> Option<String> {
        if self.noisy.is_empty() {
            return None;
        }
        let mut worst = self.noisy.to_vec();
        worst.sort_by(|a, b| b.spread.total_cmp(&a.spread));
        let named = worst.iter().take(NAMED);
        let named: Vec<String> = named
            .map(|noisy| format!("{} ({:.0} %)", noisy.figure, noisy.spread * 100.0))
            .collect();
        let rest = match self.noisy.len().saturating_sub(NAMED) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        Some(format!(
            "warning: the machine was too noisy: {} of the figures spread by more than 10 %: {}{rest}; measure it \
             again at rest",
            self.noisy.len(),
            named.join(", "),
        ))
    }
}

fn print_kernels(out: &mut impl Write, kernels: &Kernels) -> io::Result<()> {
    writeln!(out, "{:.2} µs an op, light ops {}\n", us(kernels.op), kernels.memory)?;
    table(out, product_rows(kernels), &[1, 2, 3, 4])?;
    writeln!(out)?;
    table(out, attention_rows(kernels), &[1, 2, 3])
}

fn print_link(out: &mut impl Write, link: &Link) -> io::Result<()> {
    let Link {
        h2d,
        h2d_while_cpu,
        h2d_pageable,
        d2h,
        d2h_while_cpu,
        handoff,
        submit,
        overlap_loss,
    } = link;
    writeln!(
        out,
        "copies to it {h2d}, {h2d_while_cpu} while the CPU computes, {h2d_pageable} of pageable memory"
    )?;
    writeln!(out, "copies from it {d2h}, {d2h_while_cpu} while the CPU computes")?;
    writeln!(
        out,
        "{:.0} µs a hand-off, {:.0} µs to start work, {:.0} % of overlap lost",
        us(*handoff),
        us(*submit),
        overlap_loss * 100.0
    )
}

fn us(seconds: Seconds) -> f64 {
    seconds.get() * 1e6
}

/// A head, and a row for each format: of its largest matrix the rate of one token and of the most.
fn product_rows(kernels: &Kernels) -> Vec<[String; 5]> {
    let head = ["weights", "decode", "prefill", "experts, decode", "spread"].map(str::to_owned);
    let formats = kernels.products.chunk_by(|a, b| a.format == b.format);
    let row = |of_format: &[ProductTimes]| {
        let largest = |kind| of_format.iter().rfind(|times| times.kind == kind);
        let decode =
            |kind| largest(kind).map_or("-".to_owned(), |times| read_rate(times).to_string());
        let prefill = largest(ProductKind::Dense).map_or("-".to_owned(), |times| {
            let last = times.points.last().expect("a measured matrix has points");
            flops(values(times) * f64::from(last.n_tokens), last.seconds.get())
        });
        let spreads =
            of_format.iter().flat_map(|times| &times.points).map(|p: &ProductPoint| p.spread);
        [
            of_format[0].format.to_string(),
            decode(ProductKind::Dense),
            prefill,
            decode(ProductKind::Experts),
            worst(spreads),
        ]
    };
    std::iter::once(head).chain(formats.map(row)).collect()
}

/// A head, and a row for each shape: the rate over the most cells of one token and of the most.
fn attention_rows(kernels: &Kernels) -> Vec<[String; 4]> {
    let head = ["attention", "decode", "prefill", "spread"].map(str::to_owned);
    let row = |times: &AttentionTimes| {
        let shape = times.shape;
        let name = format!("{}/{} heads of {}", shape.n_head, shape.n_kv_head, shape.key_dim);
        let rate = |point: Option<&AttentionPoint>| {
            point.map_or("-".to_owned(), |point| {
                // Earlier tokens see fewer cells.
                let cells = f64::from(point.n_kv) - f64::from(point.n_tokens - 1) / 2.0;
                let work = shape.work() * cells * f64::from(point.n_tokens);
                flops(work, point.seconds.get())
            })
        };
        let one = times.points.iter().rfind(|point| point.n_tokens == 1);
        let spreads = times.points.iter().map(|point| point.spread);
        [name, rate(one), rate(times.points.last()), worst(spreads)]
    };
    std::iter::once(head).chain(kernels.attention.iter().map(row)).collect()
}

/// Rate at which one token reads weights.
fn read_rate(times: &ProductTimes) -> BytesPerSec {
    let one = times.points.first().expect("a measured matrix has a point for one token");
    times.weights / one.seconds
}

/// Values of a matrix.
fn values(times: &ProductTimes) -> f64 {
    times.weights.get() as f64 * 8.0 / times.format.bits_per_value()
}

/// A rate of so many multiplications, each with an addition.
fn flops(multiplications: f64, seconds: f64) -> String {
    format!("{:.0} GFLOP/s", 2.0 * multiplications / seconds / 1e9)
}

fn worst(spreads: impl Iterator<Item = Option<f64>>) -> String {
    let worst = spreads.flatten().fold(0.0, f64::max);
    format!("{:.0} %", worst * 100.0)
}
