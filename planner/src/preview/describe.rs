//! A layout in few words.

use std::fmt::Write;

use super::shape::Shape;
use crate::extras::{Extras, Rows};
use crate::placement::Placement;
use crate::plan::Layout;

/// Where the shards of a layout live, as in "attention pinned, 23/34 FFN pinned, rest CPU". The embedding, whose
/// lookup costs next to nothing, is left out.
pub(super) fn in_words(layout: &Layout, ffn: &str) -> String {
    let shape = Shape::of(layout);
    let layers = || shape.attention.iter().chain(&shape.ffn);
    let all = |place| layers().all(|placement| *placement == place);
    if all(Placement::Cpu) && shape.output == Placement::Cpu {
        return "all on the CPU".to_owned();
    }
    if all(Placement::Pinned) && shape.output == Placement::Pinned {
        return "all pinned".to_owned();
    }
    // What most is left for is named last, without counting it.
    let has = |place| layers().any(|placement| *placement == place);
    let rest = match (has(Placement::Cpu), has(Placement::Streamed)) {
        (true, _) => Placement::Cpu,
        (false, true) => Placement::Streamed,
        (false, false) => shape.output,
    };
    let mut parts = if shape.attention == shape.ffn {
        vec![kind("layers", &shape.attention, rest)]
    } else {
        vec![kind("attention", &shape.attention, rest), kind(ffn, &shape.ffn, rest)]
    };
    if shape.output != rest || !has(rest) {
        parts.push(format!("output {}", verb(shape.output)));
    }
    parts.retain(|part| !part.is_empty());
    if has(rest) {
        let others = if parts.is_empty() { "all" } else { "rest" };
        parts.push(format!("{others} {}", verb(rest)));
    }
    parts.join(", ")
}

/// What an engine to come does besides, as in ", 8 ubatches to a turn, 3/16 of each FFN on the CPU pinned".
pub(super) fn extras_in_words(extras: Extras, layout: &Layout, ffn: &str) -> String {
    let mut text = String::new();
    if extras.ubatches > 1 {
        let _ = write!(text, ", {} ubatches to a turn", extras.ubatches);
    }
    let on_cpu = |shape: Shape| shape.ffn.contains(&Placement::Cpu);
    if let Some(split) = extras.split.filter(|_| on_cpu(Shape::of(layout))) {
        let place = match split.rows {
            Rows::Pinned => Placement::Pinned,
            Rows::Streamed => Placement::Streamed,
        };
        let _ = write!(text, ", {}/16 of each {ffn} on the CPU {}", split.sixteenths, verb(place));
    }
    text
}

/// The placements of one kind of shards, but for those at `rest`; empty when all are there.
fn kind(name: &str, placements: &[Placement], rest: Placement) -> String {
    let n = placements.len();
    let mut text = String::new();
    for place in [Placement::Pinned, Placement::Streamed, Placement::Cpu] {
        let count = placements.iter().filter(|placement| **placement == place).count();
        if place == rest || count == 0 {
            continue;
        }
        let verb = verb(place);
        text += &match (count == n, text.is_empty()) {
            (true, _) => format!("{name} {verb}"),
            (false, true) => format!("{count}/{n} {name} {verb}"),
            (false, false) => format!(" and {count} {verb}"),
        };
    }
    text
}

fn verb(place: Placement) -> &'static str {
    match place {
        Placement::Cpu => "CPU",
        Placement::Pinned => "pinned",
        Placement::Streamed => "streamed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    /// `e`, then attention and FFN of each layer, then the output.
    fn words(placements: &str) -> String {
        let placements = placements.chars().filter(|c| *c != ' ').map(|c| match c {
            'c' => Placement::Cpu,
            'p' => Placement::Pinned,
            _ => Placement::Streamed,
        });
        let placements = placements.collect();
        in_words(&Layout { placements, ring: Bytes::ZERO, resident: Vec::new() }, "FFN")
    }

    #[test]
    fn a_few_words_say_where_shards_live() {
        for (placements, expected) in [
            ("c cc cc cc c", "all on the CPU"),
            ("c pp pp pp p", "all pinned"),
            ("p ss ss ss s", "all streamed"),
            ("c pp pp pp c", "layers pinned, output CPU"),
            ("c pp cc cc c", "1/3 layers pinned, rest CPU"),
            ("c pp pc pc c", "attention pinned, 1/3 FFN pinned, rest CPU"),
            (
                "c pp ps pc p",
                "attention pinned, 1/3 FFN pinned and 1 streamed, output pinned, rest CPU",
            ),
            ("c pp ps ps p", "attention pinned, 1/3 FFN pinned, output pinned, rest streamed"),
            ("c ps ps ps c", "attention pinned, output CPU, rest streamed"),
            ("c sc sc sc c", "attention streamed, rest CPU"),
        ] {
            assert_eq!(words(placements), expected, "{placements}");
        }
    }
}
