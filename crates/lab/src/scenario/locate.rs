//! Finds the line and column of a field in the text of a scenario.

use std::fmt;

use toml::de::{DeTable, DeValue};

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// The path of a value: `server[1].ready.tcp`. Indices count from 0 here and from 1 when displayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Step>);

impl Path {
    pub(super) fn root() -> Path {
        Path::default()
    }

    pub(super) fn key(&self, key: &str) -> Path {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        Path(steps)
    }

    pub(super) fn index(&self, index: usize) -> Path {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        Path(steps)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if key.contains('.') => write!(f, "{}\"{key}\"", if position == 0 { "" } else { "." })?,
                Step::Key(key) => write!(f, "{}{key}", if position == 0 { "" } else { "." })?,
                Step::Index(index) => write!(f, "[{}]", index + 1)?,
            }
        }
        Ok(())
    }
}

/// Byte offset of the value at `path`, or of the nearest enclosing one that exists.
pub(super) fn locate(text: &str, path: &Path) -> usize {
    let Ok(document) = DeTable::parse(text) else { return 0 };
    let mut offset = 0;
    let mut table = Some(document.get_ref());
    let mut array = None;
    for step in &path.0 {
        let value = match step {
            Step::Key(key) => {
                table.and_then(|table: &DeTable<'_>| table.iter().find(|(name, _)| name.get_ref() == key)).map(|(name, value)| {
                    offset = name.span().start;
                    value
                })
            }
            Step::Index(index) => {
                array.and_then(|array: &toml::de::DeArray<'_>| array.get(*index)).inspect(|value| offset = value.span().start)
            }
        };
        match value.map(|value| value.get_ref()) {
            Some(DeValue::Table(inner)) => (table, array) = (Some(inner), None),
            Some(DeValue::Array(inner)) => (table, array) = (None, Some(inner)),
            _ => break,
        }
    }
    offset
}

/// Line and column, from 1, of a byte offset.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"x\"\n\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\nsysctls = { \"net.x\" = 1 }\nlist = [1,\n 2]\n";

    fn place(path: &Path) -> (usize, usize) {
        line_and_column(TEXT, locate(TEXT, path))
    }

    #[test]
    fn a_path_leads_to_its_line() {
        let host = Path::root().key("host").index(1);
        assert_eq!(place(&Path::root().key("name")), (1, 1));
        assert_eq!(place(&host.key("name")), (6, 1));
        assert_eq!(place(&host.key("sysctls").key("net.x")), (7, 13));
        assert_eq!(place(&host.key("list").index(1)), (9, 2));
        assert_eq!(host.key("sysctls").key("net.x").to_string(), "host[2].sysctls.\"net.x\"");
    }

    #[test]
    fn a_missing_value_is_located_at_the_enclosing_one() {
        assert_eq!(place(&Path::root().key("load")), (1, 1));
        assert_eq!(place(&Path::root().key("host").index(1).key("nftables")).0, 5);
        assert_eq!(place(&Path::root().key("name").key("deeper")), (1, 1));
        assert_eq!(locate("not = toml = at all", &Path::root().key("x")), 0);
        assert_eq!(line_and_column("äb", 1), (1, 1));
        assert_eq!(line_and_column("ä\nb", 99), (2, 2));
    }
}
