//! JSON and text inside an HTML file.

use chokepoint_foreign::printable_json;

/// JSON for a `<script type="application/json">` (HTML, "Restrictions for contents of script elements"): the same document, with a `\u` escape for every
/// character that could end the element, begin a comment or control the text. JSON has such characters only in strings.
pub(super) fn embedded(json: &str) -> String {
    printable_json(json).replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::view::steers;

    #[test]
    fn embedded_json_is_the_same_document_and_cannot_end_its_element() {
        let value = serde_json::json!({ "</script><!--": ["\u{202e}<script>&amp;\u{2028}\u{0}\u{7f}", 1.5, null, "höher \u{1f600}"] });
        let text = embedded(&value.to_string());
        assert!(!text.contains(['<', '>', '&']) && !text.contains(steers), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON still"), value);
    }
}
