//! Attention against a loop in double precision.

use crate::harness::{Bench, Random, check, isas, through_f16, to_f64};
use engine_core::op::{Attention, Op, View};

/// A pass over KV cells: which sequences there are and what their heads are like.
#[derive(Clone)]
struct Case {
    n_head: usize,
    n_kv_head: usize,
    key_dim: usize,
    value_dim: usize,
    /// For each sequence its cells before this pass, and its tokens in this pass.
    sequences: Vec<[usize; 2]>,
    half: bool,
    soft_cap: Option<f32>,
    window: Option<u32>,
    /// Size of queries and keys.
    size: f32,
}

impl Case {
    fn plain(n_head: usize, n_kv_head: usize, dim: usize, sequences: &[[usize; 2]]) -> Case {
        let sequences = sequences.to_vec();
        let [key_dim, value_dim] = [dim; 2];
        let (half, soft_cap, window, size) = (true, None, None, 2.0);
        Case { n_head, n_kv_head, key_dim, value_dim, sequences, half, soft_cap, window, size }
    }

    fn check(&self, nmse: f64) {
        let mut random = Random::new(1);
        let n_tokens: usize = self.sequences.iter().map(|[_, new]| new).sum();
        let n_seen: usize = self.sequences.iter().map(|[old, new]| old + new).sum();
        // Some cells belong to nobody, and each sequence's are scattered.
        let n_cells = n_seen + 5;
        let cells = &random.shuffled(n_cells)[..n_seen];
        let q = random.values(n_tokens * self.n_head * self.key_dim, self.size);
        let k = random.values(n_cells * self.n_kv_head * self.key_dim, self.size);
        let v = random.values(n_cells * self.n_kv_head * self.value_dim, 1.0);
        let mut spans = Vec::new();
        let mut start = 0;
        for [old, new] in &self.sequences {
            spans.extend((1..=*new).flat_map(|i| [start as i32, (start + old + i) as i32]));
            start += old + new;
        }
        let scale = 1.0 / (self.key_dim as f32).sqrt();
        let truth = self.truth(&q, &k, &v, cells, &spans, scale);
        check(&truth, nmse, |bench| {
            let array = |bench: &mut Bench, values, dim| match self.half {
                true => bench.f16s(values, self.n_kv_head * dim),
                false => bench.f32s(values, self.n_kv_head * dim),
            };
            let op = Attention {
                q: bench.f32s(&q, self.n_head * self.key_dim),
                k: array(bench, &k, self.key_dim),
                v: array(bench, &v, self.value_dim),
                cells: bench.i32s(cells, n_seen),
                spans: bench.i32s(&spans, 2),
                out: bench.zeros(n_tokens, self.n_head * self.value_dim),
                n_head: self.n_head as u32,
                n_kv_head: self.n_kv_head as u32,
                scale,
                soft_cap: self.soft_cap,
                window: self.window,
            };
            bench.run(&[Op::Attention(op)]);
            bench.read(&op.out)
        });
    }

    fn truth(
        &self,
        q: &[f32],
        k: &[f32],
        v: &[f32],
        cells: &[i32],
        spans: &[i32],
        scale: f32,
    ) -> Vec<f64> {
        let [k, v] = [k, v].map(|x| if self.half { through_f16(x) } else { to_f64(x) });
        let mut truth = Vec::new();
        for (token, span) in spans.chunks_exact(2).enumerate() {
            let [start, end] = [0, 1].map(|i| span[i] as usize);
            let seen = self.window.map_or(end - start, |window| (end - start).min(window as usize));
            let cells = &cells[end - seen..end];
            for head in 0..self.n_head {
                let kv_head = head / (self.n_head / self.n_kv_head);
                let query = &q[(token * self.n_head + head) * self.key_dim..][..self.key_dim];
                let row = |cell: i32| cell as usize * self.n_kv_head + kv_head;
                let scores = cells.iter().map(|&cell| {
                    let key = &k[row(cell) * self.key_dim..][..self.key_dim];
                    let dot: f64 = query.iter().zip(key).map(|(&q, k)| f64::from(q) * k).sum();
                    let score = dot * f64::from(scale);
                    self.soft_cap.map(f64::from).map_or(score, |cap| cap * (score / cap).tanh())
                });
                let scores: Vec<f64> = scores.collect();
                let max = scores.iter().copied().fold(f64::MIN, f64::max);
                let sum: f64 = scores.iter().map(|score| (score - max).exp()).sum();
                let mut out = vec![0.0; self.value_dim];
                for (score, &cell) in scores.iter().zip(cells) {
                    let share = (score - max).exp() / sum;
                    let value = &v[row(cell) * self.value_dim..][..self.value_dim];
                    out.iter_mut().zip(value).for_each(|(out, value)| *out += share * value);
                }
                truth.extend(out);
            }
        }
        truth
    }
}

#[test]
fn one_token_of_one_sequence() {
    for n_old in [0, 1, 6, 63, 64, 300, 1030] {
        Case::plain(9, 3, 64, &[[n_old, 1]]).check(1e-11);
    }
}

#[test]
fn heads_of_all_sizes_and_groups() {
    for (n_head, n_kv_head, dim) in [(1, 1, 8), (4, 4, 80), (8, 1, 128), (7, 1, 33), (12, 2, 256)] {
        for tokens in [1, 5] {
            Case::plain(n_head, n_kv_head, dim, &[[40, tokens]]).check(1e-11);
        }
    }
}

#[test]
fn prompts_in_one_piece_and_in_two() {
    for [old, new] in [[0, 2], [0, 37], [100, 33], [5, 130]] {
        Case::plain(6, 2, 32, &[[old, new]]).check(1e-11);
    }
}

#[test]
fn several_sequences_at_once() {
    Case::plain(6, 2, 32, &[[70, 1], [0, 1], [3, 20], [90, 1], [0, 18], [10, 2]]).check(1e-11);
}

/// The same tokens in one pass and one at a time give the same bits.
#[test]
fn passes_do_not_change_a_tokens_result() {
    for isa in isas() {
        for (window, n_tokens) in [(None, 300), (Some(40), 300), (None, 7)] {
            let mut bench = Bench::new(isa, 2);
            let mut random = Random::new(2);
            let (n_cells, n_head, n_kv_head, dim) = (350, 6, 2, 40);
            let cells = random.shuffled(n_cells);
            let mut op = Attention {
                q: bench.f32s(&random.values(n_tokens * n_head * dim, 2.0), n_head * dim),
                k: bench.f16s(&random.values(n_cells * n_kv_head * dim, 2.0), n_kv_head * dim),
                v: bench.f16s(&random.values(n_cells * n_kv_head * dim, 1.0), n_kv_head * dim),
                cells: bench.i32s(&cells, n_cells),
                spans: bench.zeros(1, 1),
                out: bench.zeros(n_tokens, n_head * dim),
                n_head: n_head as u32,
                n_kv_head: n_kv_head as u32,
                scale: 0.2,
                soft_cap: None,
                window,
            };
            let spans: Vec<i32> =
                (0..n_tokens).flat_map(|i| [3, (n_cells - n_tokens + i + 1) as i32]).collect();
            op.spans = bench.i32s(&spans, 2);
            bench.run(&[Op::Attention(op)]);
            let together: Vec<u32> = bench.read(&op.out);
            let row = |view: View, i: usize| View {
                offset: view.row_bytes() * i as u64,
                shape: [1, view.columns()],
                ..view
            };
            for i in 0..n_tokens {
                let one = Attention {
                    q: row(op.q, i),
                    spans: row(op.spans, i),
                    out: row(op.out, i),
                    ..op
                };
                bench.run(&[Op::Attention(one)]);
            }
            assert!(bench.read::<u32>(&op.out) == together, "{isa}, window {window:?}");
        }
    }
}

#[test]
fn single_precision_and_values_unlike_keys() {
    for sequences in [vec![[50, 1]], vec![[9, 40]]] {
        let plain = Case::plain(4, 2, 48, &sequences);
        Case { half: false, value_dim: 20, ..plain }.check(1e-12);
    }
}

#[test]
fn windows_and_caps() {
    for sequences in [vec![[50, 1]], vec![[0, 70]], vec![[130, 40]], vec![[20, 1], [0, 1], [70, 9]]]
    {
        for (soft_cap, window) in [(Some(5.0), None), (None, Some(16)), (Some(5.0), Some(1))] {
            let plain = Case::plain(6, 3, 64, &sequences);
            Case { soft_cap, window, ..plain }.check(1e-11);
        }
    }
}

#[test]
fn scores_of_thousands_do_not_overflow() {
    for sequences in [vec![[50, 1]], vec![[3, 40]]] {
        let plain = Case::plain(4, 2, 64, &sequences);
        // Errors in a score are errors of its exponential, so they weigh more the larger scores are.
        Case { size: 150.0, ..plain }.check(1e-6);
    }
}
