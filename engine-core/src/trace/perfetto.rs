//! A trace in the JSON format that Chrome's tracing page and Perfetto read.
//!
//! Source of the format: "Trace Event Format", Google, 2016.

use planner::{Lane, Shard, Span};
use serde_json::{Value, json};

use super::{Trace, TracedPass};

/// Groups of lanes, one above the other.
const MEASURED: u32 = 1;
const PREDICTED: u32 = 2;

/// The trace, with what was predicted beside it: for each pass its spans, in seconds since the pass began.
///
/// `n_layer` is the model's, for the names of its shards.
pub fn perfetto(trace: &Trace, predicted: &[Vec<Span>], n_layer: u32) -> String {
    let shards = Shard::all(n_layer);
    let name = |shard: usize| shards.get(shard).map_or_else(|| "?".into(), ToString::to_string);
    let mut events = Vec::new();
    for (process, title) in [(MEASURED, "measured"), (PREDICTED, "predicted")] {
        events.push(title_of("process_name", process, 0, title));
        for (lane, title) in [
            (None, "passes"),
            (Some(Lane::Cpu), "CPU"),
            (Some(Lane::Gpu), "GPU"),
            (Some(Lane::Copy), "copies to the GPU"),
            (Some(Lane::Handoff), "hand-offs"),
        ] {
            events.push(title_of("thread_name", process, number(lane), title));
        }
    }
    for pass in &trace.passes {
        let TracedPass { n_tokens, start, end, .. } = *pass;
        let title = size(n_tokens);
        events.push(complete(MEASURED, None, &title, start, end));
    }
    for span in &trace.spans {
        events.push(complete(MEASURED, Some(span.lane), &name(span.shard), span.start, span.end));
    }
    for (pass, spans) in trace.passes.iter().zip(predicted) {
        for span in spans {
            let (start, end) = (pass.start + span.start, pass.start + span.end);
            events.push(complete(PREDICTED, Some(span.lane), &name(span.shard), start, end));
        }
        let end = spans.iter().fold(0.0, |end: f64, span| end.max(span.end));
        let title = size(pass.n_tokens);
        events.push(complete(PREDICTED, None, &title, pass.start, pass.start + end));
    }
    json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
}

fn size(n_tokens: u32) -> String {
    if n_tokens == 1 { "1 token".into() } else { format!("{n_tokens} tokens") }
}

/// Lanes by number, from the top.
fn number(lane: Option<Lane>) -> u32 {
    match lane {
        None => 0,
        Some(Lane::Cpu) => 1,
        Some(Lane::Gpu) => 2,
        Some(Lane::Copy) => 3,
        Some(Lane::Handoff) => 4,
    }
}

fn title_of(what: &str, process: u32, lane: u32, title: &str) -> Value {
    json!({ "ph": "M", "name": what, "pid": process, "tid": lane, "args": { "name": title } })
}

/// An event with a start and a length, in microseconds.
fn complete(process: u32, lane: Option<Lane>, name: &str, start: f64, end: f64) -> Value {
    json!({
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": number(lane),
        "ts": start * 1e6,
        "dur": (end - start) * 1e6,
    })
}

#[cfg(test)]
mod tests {
    use planner::Bytes;

    use super::*;

    #[test]
    fn each_lane_has_its_events() {
        let span = |lane, shard, start, end| Span { lane, shard, start, end };
        let pass = TracedPass {
            n_ubatches: 1,
            n_tokens: 1,
            n_kv: 5,
            plan: Some(0),
            loaded: Bytes::ZERO,
            is_cold: false,
            start: 1.0,
            end: 2.0,
        };
        let trace = Trace { passes: vec![pass], spans: vec![span(Lane::Gpu, 3, 1.25, 1.5)] };
        let text = perfetto(&trace, &[vec![span(Lane::Copy, 2, 0.25, 0.5)]], 2);
        let json: Value = serde_json::from_str(&text).expect("JSON");
        let events = json["traceEvents"].as_array().expect("events");
        let found = |name: &str| {
            let event = events.iter().find(|event| event["name"] == name).expect("the event");
            [&event["pid"], &event["tid"], &event["ts"], &event["dur"]].map(Value::as_f64)
        };
        assert_eq!(found("attention 1"), [1.0, 2.0, 1.25e6, 0.25e6].map(Some));
        assert_eq!(found("FFN 0"), [2.0, 3.0, 1.25e6, 0.25e6].map(Some));
    }
}
