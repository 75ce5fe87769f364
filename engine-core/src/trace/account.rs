//! Where the time of a trace went.

use std::collections::BTreeMap;

use planner::{Lane, Seconds, Span};

use super::Trace;

/// Where time went.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Account {
    /// The CPU computed.
    pub cpu: Seconds,
    /// The GPU computed.
    pub gpu: Seconds,
    /// Copies went on while one of the two computed.
    pub hidden: Seconds,
    /// Copies went on while neither did.
    pub exposed: Seconds,
    /// Times that work was handed from one to the other.
    pub n_handoffs: u32,
    /// What that took.
    pub handoffs: Seconds,
    /// Streamed shards that the GPU waited for, the longest first.
    pub stalls: Vec<Stall>,
}

/// Waiting for the copy of one shard, in all passes together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// The shard, by its place in running order.
    pub shard: usize,
    /// Passes in which its copy was waited for.
    pub n: u32,
    /// How long.
    pub time: Seconds,
}

impl Account {
    /// The account of a trace.
    pub fn of(trace: &Trace) -> Account {
        let of_lane = |lane: Lane| trace.spans.iter().filter(move |span| span.lane == lane);
        let sum = |lane| {
            let lengths = of_lane(lane).map(|span| span.end - span.start);
            Seconds::new(lengths.fold(0.0, |sum, length| sum + length))
        };
        let computing = merged(of_lane(Lane::Cpu).chain(of_lane(Lane::Gpu)));
        let copying = merged(of_lane(Lane::Copy));
        let hidden = overlap(&computing, &copying);
        let copied: f64 = copying.iter().map(|(start, end)| end - start).sum();
        Account {
            cpu: sum(Lane::Cpu),
            gpu: sum(Lane::Gpu),
            hidden: Seconds::new(hidden),
            exposed: Seconds::new((copied - hidden).max(0.0)),
            n_handoffs: of_lane(Lane::Handoff).count() as u32,
            handoffs: sum(Lane::Handoff),
            stalls: stalls(trace),
        }
    }
}

/// The stretches that spans cover together. Spans come by their start.
fn merged<'a>(spans: impl Iterator<Item = &'a Span>) -> Vec<(f64, f64)> {
    let mut stretches: Vec<(f64, f64)> = spans.map(|span| (span.start, span.end)).collect();
    stretches.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged: Vec<(f64, f64)> = Vec::new();
    for (start, end) in stretches {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

fn overlap(a: &[(f64, f64)], b: &[(f64, f64)]) -> f64 {
    let (mut i, mut j, mut sum) = (0, 0, 0.0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += (x.1.min(y.1) - x.0.max(y.0)).max(0.0);
        if x.1 < y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    sum
}

/// A shard's turn on the GPU begins late by the time between the end of what was computed before it and the end of its
/// own copy.
fn stalls(trace: &Trace) -> Vec<Stall> {
    let mut last_copy: BTreeMap<usize, f64> = BTreeMap::new();
    let mut stalls: BTreeMap<usize, Stall> = BTreeMap::new();
    let mut computed = 0.0_f64;
    // By their ends, each copy comes before what needs it.
    let mut spans: Vec<&Span> = trace.spans.iter().collect();
    spans.sort_by(|a, b| a.end.total_cmp(&b.end));
    for span in spans {
        match span.lane {
            Lane::Copy => {
                last_copy.insert(span.shard, span.end);
            }
            Lane::Gpu => {
                let copied = last_copy.remove(&span.shard).unwrap_or(0.0);
                let time = copied.min(span.start) - computed;
                if computed > 0.0 && time > 0.0 {
                    let none = Stall { shard: span.shard, n: 0, time: Seconds::ZERO };
                    let stall = stalls.entry(span.shard).or_insert(none);
                    stall.n += 1;
                    stall.time += Seconds::new(time);
                }
                computed = span.end;
            }
            Lane::Cpu => computed = span.end,
            Lane::Handoff => {}
        }
    }
    let mut stalls: Vec<Stall> = stalls.into_values().collect();
    stalls.sort_by(|a, b| b.time.get().total_cmp(&a.time.get()));
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lane: Lane, shard: usize, start: f64, end: f64) -> Span {
        Span { lane, shard, start, end }
    }

    #[test]
    fn copies_are_hidden_where_something_computes() {
        let spans = vec![
            span(Lane::Copy, 2, 0.0, 3.0),
            span(Lane::Cpu, 0, 1.0, 2.0),
            span(Lane::Handoff, 2, 2.0, 2.5),
            span(Lane::Gpu, 2, 3.0, 4.0),
            span(Lane::Copy, 3, 3.0, 3.5),
            span(Lane::Gpu, 3, 4.0, 5.0),
        ];
        let account = Account::of(&Trace { spans, ..Trace::default() });
        assert_eq!((account.hidden.get(), account.exposed.get()), (1.5, 2.0));
        assert_eq!((account.cpu.get(), account.gpu.get()), (1.0, 2.0));
        assert_eq!((account.n_handoffs, account.handoffs.get()), (1, 0.5));
        // Shard 2 came a second after the CPU was done; shard 3 was there in time.
        assert_eq!(account.stalls, [Stall { shard: 2, n: 1, time: Seconds::new(1.0) }]);
    }
}
