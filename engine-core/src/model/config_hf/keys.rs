//! Typed access to the keys of a JSON object, with errors that name them.

use serde_json::Value;

use crate::model::ModelError;

/// Typed access to one JSON object. A key that is `null` counts as absent.
pub(super) struct Keys<'a> {
    object: &'a Value,
    path: String,
}

impl<'a> Keys<'a> {
    /// The outermost object of a file.
    pub(super) fn of(object: &'a Value) -> Keys<'a> {
        Keys { object, path: String::new() }
    }

    pub(super) fn name(&self, key: &str) -> String {
        format!("{}{key}", self.path)
    }

    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn bad(&self, key: &str, expected: &'static str) -> ModelError {
        let found = self.get(key).map_or_else(|| "absent".into(), Value::to_string);
        ModelError::BadValue {
            key: self.name(key),
            found: found.chars().take(60).collect(),
            expected,
        }
    }

    pub(super) fn read<T>(
        &self,
        key: &str,
        expected: &'static str,
        convert: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, ModelError> {
        self.get(key).map(|value| convert(value).ok_or_else(|| self.bad(key, expected))).transpose()
    }

    pub(super) fn optional_u32(&self, key: &str) -> Result<Option<u32>, ModelError> {
        self.read(key, "a non-negative whole number", |v| v.as_u64()?.try_into().ok())
    }

    pub(super) fn u32(&self, key: &str) -> Result<u32, ModelError> {
        self.optional_u32(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }

    pub(super) fn optional_f64(&self, key: &str) -> Result<Option<f64>, ModelError> {
        self.read(key, "a finite number", |v| v.as_f64().filter(|x| x.is_finite()))
    }

    pub(super) fn f64(&self, key: &str) -> Result<f64, ModelError> {
        self.optional_f64(key)?.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })
    }

    pub(super) fn optional_bool(&self, key: &str) -> Result<Option<bool>, ModelError> {
        self.read(key, "true or false", Value::as_bool)
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<&'a str>, ModelError> {
        self.read(key, "text", Value::as_str)
    }

    pub(super) fn f32s(&self, key: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        let numbers = self.read(key, "a list of numbers", |value| {
            value.as_array()?.iter().map(|x| Some(x.as_f64()? as f32)).collect::<Option<Vec<_>>>()
        })?;
        let numbers = numbers.ok_or_else(|| ModelError::MissingKey { key: self.name(key) })?;
        if numbers.len() == len {
            Ok(numbers)
        } else {
            Err(self.bad(key, "a number per pair of rotated values"))
        }
    }

    pub(super) fn inside(&self, key: &str) -> Option<Keys<'a>> {
        let object = self.get(key).filter(|value| value.is_object())?;
        Some(Keys { object, path: format!("{}{key}.", self.path) })
    }
}
