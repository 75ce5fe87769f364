//! Values as Python prints them: `str`, `repr` and `json.dumps`. Chat templates are written against Python.

use std::fmt::Write;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::stand_ins::is_private;

/// `str(value)`, with undefined as nothing.
pub(super) fn to_str(value: &Value) -> String {
    match value.kind() {
        ValueKind::Undefined => String::new(),
        ValueKind::String => value.as_str().unwrap_or_default().to_owned(),
        _ => repr(value),
    }
}

/// `repr(value)`.
fn repr(value: &Value) -> String {
    match value.kind() {
        ValueKind::None => "None".to_owned(),
        ValueKind::Bool => if value.is_true() { "True" } else { "False" }.to_owned(),
        ValueKind::Number => number(value),
        ValueKind::String => quoted(value.as_str().unwrap_or_default()),
        ValueKind::Seq if value.is_tuple() => tuple(value),
        ValueKind::Seq => format!("[{}]", joined(value, repr)),
        ValueKind::Map => {
            let pair = |key: Value| {
                let item = value.get_item(&key).unwrap_or_default();
                format!("{}: {}", repr(&key), repr(&item))
            };
            format!("{{{}}}", joined(value, |key| pair(key.clone())))
        }
        _ => value.to_string(),
    }
}

fn tuple(value: &Value) -> String {
    let comma = if value.len() == Some(1) { "," } else { "" };
    format!("({}{comma})", joined(value, repr))
}

fn joined(value: &Value, element: impl Fn(&Value) -> String) -> String {
    let elements = value.try_iter().into_iter().flatten();
    elements.map(|value| element(&value)).collect::<Vec<_>>().join(", ")
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float)
}

/// A float as Python writes it: the shortest digits that give it back, with an exponent outside 1e-4 to 1e16.
fn float(x: f64) -> String {
    if x.is_nan() {
        return "nan".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{x:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let plain = x.to_string();
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// A string in Python's quotes: single ones, unless it has single and no double ones itself.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(out, "\\x{:02x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push(quote);
    out
}

/// How `json.dumps` lays a value out.
pub(super) struct JsonStyle {
    /// What one level of depth is indented by; on one line if none.
    pub(super) indent: Option<String>,
    pub(super) item_separator: String,
    pub(super) key_separator: String,
    pub(super) sort_keys: bool,
    pub(super) ascii: bool,
}

impl Default for JsonStyle {
    /// On one line, as it is.
    fn default() -> Self {
        JsonStyle {
            indent: None,
            item_separator: ", ".to_owned(),
            key_separator: ": ".to_owned(),
            sort_keys: false,
            ascii: false,
        }
    }
}

/// `json.dumps(value)`. Undefined values and others that JSON lacks are null.
pub(super) fn to_json(value: &Value, style: &JsonStyle) -> String {
    let mut out = String::new();
    write_json(value, style, 0, &mut out);
    out
}

fn write_json(value: &Value, style: &JsonStyle, depth: usize, out: &mut String) {
    match value.kind() {
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&json_number(value)),
        ValueKind::String => write_json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            write_items(['[', ']'], &items, style, depth, out, |item, out| {
                write_json(item, style, depth + 1, out);
            });
        }
        ValueKind::Map => {
            let mut keys: Vec<Value> = value.try_iter().into_iter().flatten().collect();
            if style.sort_keys {
                keys.sort();
            }
            write_items(['{', '}'], &keys, style, depth, out, |key, out| {
                write_json_string(&json_key(key), style, out);
                out.push_str(&style.key_separator);
                write_json(&value.get_item(key).unwrap_or_default(), style, depth + 1, out);
            });
        }
        _ => out.push_str("null"),
    }
}

fn json_number(value: &Value) -> String {
    match number(value).as_str() {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        number => number.to_owned(),
    }
}

/// A key as JSON text: Python turns numbers, truth values and `None` into their JSON spelling.
fn json_key(key: &Value) -> String {
    match key.kind() {
        ValueKind::Bool => if key.is_true() { "true" } else { "false" }.to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Number => json_number(key),
        _ => to_str(key),
    }
}

fn write_items(
    brackets: [char; 2],
    items: &[Value],
    style: &JsonStyle,
    depth: usize,
    out: &mut String,
    write: impl Fn(&Value, &mut String),
) {
    let new_line = |depth: usize, out: &mut String| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            out.push_str(&indent.repeat(depth));
        }
    };
    out.push(brackets[0]);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        new_line(depth + 1, out);
        write(item, out);
    }
    if !items.is_empty() {
        new_line(depth, out);
    }
    out.push(brackets[1]);
}

fn write_json_string(text: &str, style: &JsonStyle, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            // A private-use character may stand in for one of ASCII.
            c if (c as u32) < 0x20 || (style.ascii && !c.is_ascii() && !is_private(c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(value: serde_json::Value) -> Value {
        Value::from(minijinja::value::Serde(value))
    }

    #[test]
    fn printed_as_python_prints() {
        let cases = [
            (json!(null), "None"),
            (json!(true), "True"),
            (json!("it's"), "it's"),
            (json!([1, "a", null, false]), "[1, 'a', None, False]"),
            (json!({"b": "it's", "a": {"x": [1.0]}}), r#"{'b': "it's", 'a': {'x': [1.0]}}"#),
            (json!(["a\n\u{7f}\\'\""]), r#"['a\n\x7f\\\'"']"#),
            (json!(3), "3"),
            (json!(0.1), "0.1"),
            (json!(100.0), "100.0"),
            (json!(1e15), "1000000000000000.0"),
            (json!(1e16), "1e+16"),
            (json!(1.5e-5), "1.5e-05"),
            (json!(1e-4), "0.0001"),
            (json!(-0.0), "-0.0"),
            (json!(1.5e300), "1.5e+300"),
        ];
        for (given, expected) in cases {
            assert_eq!(to_str(&value(given)), expected);
        }
    }

    #[test]
    fn json_as_python_dumps() {
        let given = json!({"b": [1, 2.0, "é\n\u{1}"], "a": {}, "c": [], "d": null});
        let dumped = to_json(&value(given), &JsonStyle::default());
        assert_eq!(dumped, r#"{"b": [1, 2.0, "é\n\u0001"], "a": {}, "c": [], "d": null}"#);
    }

    #[test]
    fn json_styles() {
        let given = value(json!({"b": [1, {"x": 2}], "a": "é😀"}));
        let indented = JsonStyle {
            indent: Some("  ".to_owned()),
            item_separator: ",".to_owned(),
            sort_keys: true,
            ..JsonStyle::default()
        };
        let expected =
            "{\n  \"a\": \"é😀\",\n  \"b\": [\n    1,\n    {\n      \"x\": 2\n    }\n  ]\n}";
        assert_eq!(to_json(&given, &indented), expected);
        let ascii = JsonStyle { ascii: true, ..JsonStyle::default() };
        assert_eq!(to_json(&value(json!("é😀")), &ascii), r#""\u00e9\ud83d\ude00""#);
    }
}
