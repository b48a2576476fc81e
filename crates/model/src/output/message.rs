//! Messages: what the model wants to say, as an id with arguments. The catalogue turns them into sentences.

use std::collections::BTreeMap;

use serde::Serialize;

/// An argument of a message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A number; the catalogue formats it for its language.
    Number(f64),
    /// Text that is the same in every language: a name, a path, a command.
    Text(String),
    /// A sentence or a phrase within the sentence.
    Message(Message),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}
impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number as f64)
    }
}
impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Number(f64::from(number))
    }
}
impl From<Message> for Value {
    fn from(message: Message) -> Self {
        Value::Message(message)
    }
}

/// A sentence by its id in the catalogue, with its arguments.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Message {
    /// Id in the catalogue, kebab-case.
    pub id: &'static str,
    /// Arguments by name.
    pub args: BTreeMap<&'static str, Value>,
}

impl Message {
    /// A message without arguments.
    pub fn new(id: &'static str) -> Self {
        Self { id, args: BTreeMap::new() }
    }

    /// "15.5 to 15.9", or the number alone where both are the same.
    pub(crate) fn range(low: f64, high: f64) -> Self {
        Self::new(if low < high { "number-range" } else { "number-one" }).with("low", low).with("high", high)
    }

    /// The same message with one more argument.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.args.insert(name, value.into());
        self
    }
}
