//! The template language as transformers sets it up: options, functions and filters.

use std::fmt;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest};
use minijinja::{Environment, Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

use super::Clock;
use super::python::{JsonStyle, to_json, to_str};

/// What a template raised by `raise_exception`.
#[derive(Debug)]
pub(super) struct Raised(pub(super) String);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Raised {}

/// Steps after which rendering is given up: a template out of a file may loop as long as it likes. The largest published
/// ones take some ten thousand for a short conversation.
const FUEL: u64 = 50_000_000;

/// A template language without templates.
pub(super) fn environment(clock: Clock) -> Environment<'static> {
    let mut env = Environment::new();
    env.set_syntax(syntax());
    env.set_fuel(Some(FUEL));
    env.set_formatter(|out, _, value| {
        out.write_str(&to_str(value)).map_err(|_| Error::from(ErrorKind::WriteFailure))
    });
    env.set_unknown_method_callback(method);
    env.add_function("raise_exception", |message: &str| -> Result<Value, Error> {
        let error = Error::new(ErrorKind::InvalidOperation, "raise_exception was called");
        Err(error.with_source(Raised(message.to_owned())))
    });
    env.add_function("strftime_now", move |format: &str| clock.format(format));
    env.add_filter("tojson", tojson);
    env.add_filter("string", |value: &Value| to_str(value));
    env.add_filter("join", join);
    env.add_test("iterable", |value: &Value| !value.is_none() && value.try_iter().is_ok());
    env
}

fn syntax() -> SyntaxConfig {
    let config = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    config.expect("the default delimiters do not clash")
}

/// Python's string methods, beyond those that minijinja-contrib has.
fn method(state: &mut State, value: &Value, name: &str, args: &[Value]) -> Result<Value, Error> {
    let text = value.as_str();
    let argument = args.first().and_then(Value::as_str);
    match (name, text, argument) {
        ("removeprefix", Some(text), Some(part)) => {
            Ok(text.strip_prefix(part).unwrap_or(text).into())
        }
        ("removesuffix", Some(text), Some(part)) => {
            Ok(text.strip_suffix(part).unwrap_or(text).into())
        }
        ("title", Some(text), None) => Ok(title(text).into()),
        _ => pycompat::unknown_method_callback(state, value, name, args),
    }
}

/// Python's `str.title`: a letter is upper case after anything but a letter, else lower case.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut after_letter = false;
    for c in text.chars() {
        if after_letter {
            out.extend(c.to_lowercase());
        } else {
            out.extend(c.to_uppercase());
        }
        after_letter = c.is_alphabetic();
    }
    out
}

/// `json.dumps`, with the options that transformers passes on.
fn tojson(value: &Value, args: Rest<Value>, kwargs: Kwargs) -> Result<String, Error> {
    let ascii: Option<bool> = kwargs.get("ensure_ascii")?;
    let sort_keys: Option<bool> = kwargs.get("sort_keys")?;
    let separators: Option<Vec<String>> = kwargs.get("separators")?;
    let mut indent: Option<Value> = kwargs.get("indent")?;
    kwargs.assert_all_used()?;
    // In order: ensure_ascii, indent.
    let ascii = ascii.or(args.first().map(Value::is_true)).unwrap_or(false);
    indent = indent.or_else(|| args.get(1).cloned());
    let indent = indent.filter(|indent| !indent.is_none()).map(|indent| match indent.as_str() {
        Some(text) => text.to_owned(),
        None => " ".repeat(indent.as_usize().unwrap_or(0)),
    });
    let (item_separator, key_separator) = match separators.as_deref() {
        Some([item, key]) => (item.clone(), key.clone()),
        _ if indent.is_some() => (",".to_owned(), ": ".to_owned()),
        _ => (", ".to_owned(), ": ".to_owned()),
    };
    let sort_keys = sort_keys.unwrap_or(false);
    Ok(to_json(value, &JsonStyle { indent, item_separator, key_separator, sort_keys, ascii }))
}

/// Jinja's `join`, printing elements as Python does.
fn join(value: &Value, separator: Option<&str>, kwargs: Kwargs) -> Result<String, Error> {
    let attribute: Option<&str> = kwargs.get("attribute")?;
    let named: Option<&str> = kwargs.get("d")?;
    kwargs.assert_all_used()?;
    let separator = separator.or(named).unwrap_or("");
    if value.is_undefined() {
        return Ok(String::new());
    }
    let element = |element: Value| match attribute {
        Some(name) => element.get_attr(name).map(|value| to_str(&value)),
        None => Ok(to_str(&element)),
    };
    Ok(value.try_iter()?.map(element).collect::<Result<Vec<_>, _>>()?.join(separator))
}
