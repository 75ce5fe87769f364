//! Keeps the text of messages from turning into control tokens.
//!
//! A template moves, cuts and joins the texts of messages in ways that can not be followed from outside, and its output
//! is one string, in which control tokens are found by their text. So messages are written in another alphabet: of every
//! control token one telling character, such as the `|` of `<|im_end|>`, is replaced in all texts of the conversation by
//! a private-use character that stands in for it. Whatever the template makes of them, no control token can be found in
//! text that came from a message. Once control tokens are found, stand-ins become the characters they stand for.
//!
//! Where a message has a text that the template itself looks for, such as `</think>`, or a user-defined token, it is
//! left alone, provided that this text can not be part of any control token.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// What to replace in the texts of a conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Guard {
    /// One character of every control token that has a telling one.
    telling: BTreeSet<char>,
    /// Control tokens that are words: only these texts are replaced, at their first character.
    words: Vec<String>,
    /// Texts whose characters stay as they are.
    kept: Vec<String>,
}

impl Guard {
    /// A guard against `control` texts that leaves those of `wanted` alone that are safe.
    pub(super) fn new<'a>(
        control: impl IntoIterator<Item = &'a str>,
        wanted: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut guard = Guard::default();
        let mut by_telling: BTreeMap<char, Vec<&str>> = BTreeMap::new();
        for text in control.into_iter().filter(|text| !text.is_empty()) {
            match telling(text) {
                Some(c) => by_telling.entry(c).or_default().push(text),
                None => guard.words.push(text.to_owned()),
            }
        }
        let is_safe = |text: &String| {
            let mut telling =
                text.char_indices().filter_map(|(at, c)| Some((at, by_telling.get(&c)?)));
            let needed = telling.clone().next().is_some();
            needed && telling.all(|(at, control)| !control.iter().any(|c| fits(text, at, c)))
        };
        guard.kept = wanted.into_iter().filter(is_safe).collect();
        guard.telling = by_telling.into_keys().collect();
        guard
    }

    /// Chooses stand-ins that occur neither in `conversation` nor in `template`. None when there are not enough.
    pub(super) fn stand_ins(&self, conversation: &[&Value], template: &str) -> Option<StandIns> {
        let mut used: BTreeSet<char> = template.chars().filter(|&c| is_private(c)).collect();
        for value in conversation {
            collect_private(value, &mut used);
        }
        let mut free = PRIVATE.into_iter().flatten().filter(|c| !used.contains(c));
        let firsts = self.words.iter().filter_map(|word| word.chars().next());
        let needed: BTreeSet<char> = self.telling.iter().copied().chain(firsts).collect();
        let pairs = needed.into_iter().map(|c| free.next().map(|stand_in| (c, stand_in)));
        let by_character: BTreeMap<char, char> = pairs.collect::<Option<_>>()?;
        let by_stand_in = by_character.iter().map(|(&c, &stand_in)| (stand_in, c)).collect();
        Some(StandIns { by_character, by_stand_in })
    }

    /// `value` with stand-ins in all its texts and keys.
    pub(super) fn hide(&self, value: Value, stand_ins: &StandIns) -> Value {
        match value {
            Value::String(text) => Value::String(self.hide_text(text, stand_ins)),
            Value::Array(items) => {
                items.into_iter().map(|item| self.hide(item, stand_ins)).collect()
            }
            Value::Object(map) => {
                let pair =
                    |(key, value)| (self.hide_text(key, stand_ins), self.hide(value, stand_ins));
                Value::Object(map.into_iter().map(pair).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
        }
    }

    fn hide_text(&self, text: String, stand_ins: &StandIns) -> String {
        let mut hidden: BTreeSet<usize> =
            self.words.iter().flat_map(|word| starts(&text, word)).collect();
        let telling = text.char_indices().filter(|(_, c)| self.telling.contains(c));
        hidden.extend(telling.map(|(at, _)| at));
        if hidden.is_empty() {
            return text;
        }
        for kept in &self.kept {
            for start in starts(&text, kept) {
                let inside: Vec<usize> = hidden.range(start..start + kept.len()).copied().collect();
                for at in inside {
                    hidden.remove(&at);
                }
            }
        }
        let replace = |(at, c)| if hidden.contains(&at) { stand_ins.by_character[&c] } else { c };
        text.char_indices().map(replace).collect()
    }
}

fn starts(text: &str, part: &str) -> impl Iterator<Item = usize> {
    text.match_indices(part).map(|(at, _)| at)
}

/// The character to know a control token by: one that templates seldom look for in messages.
fn telling(text: &str) -> Option<char> {
    let rare =
        |c: &char| !c.is_alphanumeric() && !c.is_whitespace() && !"<>[]{}()/_-:.".contains(*c);
    text.chars().find(rare).or_else(|| text.chars().find(|c| "<>[]{}()".contains(*c)))
}

/// Whether `text` could be a part of `control`, or overlap it, with the character at byte `at` being its telling one.
fn fits(text: &str, at: usize, control: &str) -> bool {
    let Some(c) = text[at..].chars().next() else { return false };
    starts(control, c.encode_utf8(&mut [0; 4])).any(|there| {
        let (before, after) = text.split_at(at);
        let (control_before, control_after) = control.split_at(there);
        let agrees = |(a, b): (char, char)| a == b;
        before.chars().rev().zip(control_before.chars().rev()).all(agrees)
            && after.chars().zip(control_after.chars()).all(agrees)
    })
}

const PRIVATE: [std::ops::RangeInclusive<char>; 3] =
    ['\u{F0000}'..='\u{FFFFD}', '\u{100000}'..='\u{10FFFD}', '\u{E000}'..='\u{F8FF}'];

/// Whether `c` is of a kind that stand-ins are taken from.
pub(super) fn is_private(c: char) -> bool {
    PRIVATE.iter().any(|range| range.contains(&c))
}

fn collect_private(value: &Value, used: &mut BTreeSet<char>) {
    match value {
        Value::String(text) => used.extend(text.chars().filter(|&c| is_private(c))),
        Value::Array(items) => items.iter().for_each(|item| collect_private(item, used)),
        Value::Object(map) => {
            for (key, value) in map {
                used.extend(key.chars().filter(|&c| is_private(c)));
                collect_private(value, used);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Characters and the private-use characters that stand in for them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StandIns {
    by_character: BTreeMap<char, char>,
    by_stand_in: BTreeMap<char, char>,
}

impl StandIns {
    /// The character that `c` stands in for, or `c`.
    pub(crate) fn reveal(&self, c: char) -> char {
        self.by_stand_in.get(&c).copied().unwrap_or(c)
    }

    /// `text` without stand-ins.
    pub(crate) fn reveal_text(&self, text: &str) -> String {
        text.chars().map(|c| self.reveal(c)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn guard(control: &[&str], wanted: &[&str]) -> Guard {
        Guard::new(control.iter().copied(), wanted.iter().map(|text| text.to_string()))
    }

    /// Whether anything in `text` is replaced; what is replaced comes back in any case.
    fn is_changed(guard: &Guard, text: &str) -> bool {
        let value = json!(text);
        let stand_ins = guard.stand_ins(&[&value], "").unwrap();
        let hidden = guard.hide(value, &stand_ins);
        let hidden = hidden.as_str().unwrap();
        assert_eq!(stand_ins.reveal_text(hidden), text);
        hidden != text
    }

    #[test]
    fn one_character_tells_a_control_token() {
        let cases = [
            ("<|im_end|>", Some('|')),
            ("<｜User｜>", Some('｜')),
            ("</s>", Some('<')),
            ("[INST]", Some('[')),
            ("PAD", None),
            ("end_of_turn", None),
        ];
        for (text, expected) in cases {
            assert_eq!(telling(text), expected, "{text}");
        }
    }

    #[test]
    fn words_are_replaced_only_where_they_stand() {
        let guard = guard(&["PAD", "<|x|>"], &[]);
        for (text, changed) in [("PAD", true), ("aPADb", true), ("P A D", false), ("a|b", true)] {
            assert_eq!(is_changed(&guard, text), changed, "{text}");
        }
    }

    #[test]
    fn wanted_texts_are_kept_unless_part_of_a_control_token() {
        let guard = guard(&["</s>", "<|im_end|>"], &["</think>", "<", "\n<", "|im", "a", "</s>"]);
        assert_eq!(guard.kept, ["</think>"]);
        assert!(!is_changed(&guard, "a</think>b"));
        for text in ["<", "\n<b>", "|im", "</think", "</s>"] {
            assert!(is_changed(&guard, text), "{text}");
        }
    }

    #[test]
    fn keys_and_nested_texts_are_replaced_too() {
        let guard = guard(&["<|x|>"], &[]);
        let value = json!({"a|": ["|", {"b": "c|", "n": 1}], "d": null});
        let stand_ins = guard.stand_ins(&[&value], "").unwrap();
        let hidden = guard.hide(value.clone(), &stand_ins).to_string();
        assert!(!hidden.contains('|'));
        assert_eq!(stand_ins.reveal_text(&hidden), value.to_string());
    }

    #[test]
    fn stand_ins_are_new_characters() {
        let guard = guard(&["<|x|>"], &[]);
        let used = json!({"\u{F0000}": ["\u{F0001}"]});
        let stand_ins = guard.stand_ins(&[&used], "\u{F0002}").unwrap();
        assert_eq!(stand_ins.by_character[&'|'], '\u{F0003}');

        let all: String = PRIVATE.into_iter().flatten().collect();
        assert_eq!(guard.stand_ins(&[&json!(all)], ""), None);
    }
}
