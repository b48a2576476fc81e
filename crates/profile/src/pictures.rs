//! Pictures and files for other programs, made of a profile: flame graphs as a page and as SVG, pprof, the Firefox Profiler's form.

pub mod firefox;
pub mod html;
pub mod pprof;
pub mod svg;

/// Text that can stand in HTML, XML and their attributes. Letters that XML 1.0 does not allow become spaces.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            letter if (letter < ' ' && letter != '\n') || matches!(letter, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_escapes() {
        assert_eq!(super::escape("<a b=\"c\">&'\u{1}"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39; ");
    }
}
