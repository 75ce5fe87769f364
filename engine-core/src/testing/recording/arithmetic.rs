//! Stand-ins for arithmetic: what an op writes is a digest of exactly those bytes that it reads, so that one wrong byte
//! anywhere changes everything that comes of it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::memory::Memory;
use crate::op::{Attention, MatMulExperts, Op, RouteExperts, ScatterRows, View};

/// Runs one op.
pub(super) fn run(op: &Op, memory: &mut Memory) {
    match op {
        Op::ScatterRows(op) => scatter(op, memory),
        Op::RouteExperts(op) => route(op, memory),
        Op::GatherRows(op) => {
            let mut digest = Digest::new();
            for row in memory.numbers(&op.rows) {
                digest.add(row_of(memory, &op.table, row));
            }
            digest.fill(memory.bytes_mut(&op.y));
        }
        Op::Attention(op) => attend(op, memory),
        Op::MatMulExperts(op) => {
            let mut digest = Digest::of(memory, &[op.x, op.experts]);
            for expert in chosen(op, memory) {
                digest.add(memory.bytes(&op.w[expert]));
            }
            digest.fill(memory.bytes_mut(&op.y));
        }
        Op::MatMul(_)
        | Op::RmsNorm(_)
        | Op::Rope(_)
        | Op::Glu(_)
        | Op::Add(_)
        | Op::AddBias(_)
        | Op::SoftCap(_)
        | Op::CombineExperts(_) => {
            let digest = Digest::of(memory, &op.reads());
            op.writes().iter().for_each(|view| digest.fill(memory.bytes_mut(view)));
        }
    }
}

/// The experts that the tokens of a product have chosen.
pub(super) fn chosen(op: &MatMulExperts, memory: &Memory) -> BTreeSet<usize> {
    memory.numbers(&op.experts).into_iter().map(|expert| expert as usize).collect()
}

fn row_of<'m>(memory: &'m Memory, table: &View, row: u32) -> &'m [u8] {
    &memory.bytes(table)[row_range(table, row)]
}

fn row_range(table: &View, row: u32) -> Range<usize> {
    let size = table.row_bytes().as_usize();
    row as usize * size..(row as usize + 1) * size
}

fn scatter(op: &ScatterRows, memory: &mut Memory) {
    for (i, row) in (0..).zip(memory.numbers(&op.rows)) {
        let mut digest = Digest::new();
        digest.add(row_of(memory, &op.x, i));
        digest.fill(&mut memory.bytes_mut(&op.table)[row_range(&op.table, row)]);
    }
}

fn attend(op: &Attention, memory: &mut Memory) {
    let (cells, spans) = (memory.numbers(&op.cells), memory.numbers(&op.spans));
    let mut digest = Digest::of(memory, &[op.q]);
    for span in spans.as_chunks::<2>().0 {
        let seen = &cells[span[0] as usize..span[1] as usize];
        let hidden = op.window.map_or(0, |window| seen.len().saturating_sub(window as usize));
        for &cell in &seen[hidden..] {
            digest.add(row_of(memory, &op.k, cell));
            digest.add(row_of(memory, &op.v, cell));
        }
    }
    digest.fill(memory.bytes_mut(&op.out));
}

/// Experts by chance, with the logits as its seed: the same on every device.
fn route(op: &RouteExperts, memory: &mut Memory) {
    let (n_expert, n_used) = (op.logits.columns() as usize, op.experts.columns() as usize);
    let mut numbers = Vec::new();
    for token in 0..op.logits.rows() {
        let mut digest = Digest::new();
        digest.add(row_of(memory, &op.logits, token));
        let mut left: Vec<u32> = (0..n_expert as u32).collect();
        for i in 0..n_used {
            numbers.push(left.swap_remove((digest.word(i) % left.len() as u64) as usize));
        }
    }
    let digest = Digest::of(memory, &[op.logits]);
    let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    memory.bytes_mut(&op.experts).copy_from_slice(&bytes);
    digest.fill(memory.bytes_mut(&op.shares));
}

/// A number that depends on every byte added, and on their order.
struct Digest(u64);

impl Digest {
    fn new() -> Digest {
        Digest(0x9E37_79B9_7F4A_7C15)
    }

    fn of(memory: &Memory, views: &[View]) -> Digest {
        let mut digest = Digest::new();
        views.iter().for_each(|view| digest.add(memory.bytes(view)));
        digest
    }

    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let rest = rest.iter().fold(rest.len() as u64, |word, &byte| word << 8 | u64::from(byte));
        let words = words.iter().map(|word| u64::from_le_bytes(*word)).chain([rest]);
        self.0 = words.fold(self.0, |digest, word| {
            (digest ^ word).wrapping_mul(0xFF51_AFD7_ED55_8CCD).rotate_left(29)
        });
    }

    /// Numbers that all depend on the digest.
    fn word(&self, i: usize) -> u64 {
        let word = (self.0 ^ i as u64).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        word ^ word >> 32
    }

    fn fill(&self, bytes: &mut [u8]) {
        for (i, chunk) in bytes.chunks_mut(8).enumerate() {
            chunk.copy_from_slice(&self.word(i).to_le_bytes()[..chunk.len()]);
        }
    }
}
