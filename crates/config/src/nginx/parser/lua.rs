//! Finds the end of a block of Lua code. Braces in Lua strings, long brackets and comments do not count (lua-nginx-module, ngx_http_lua_lex).

/// True for the directives whose block is code: `content_by_lua_block`, `init_by_lua_block`, `ssl_certificate_by_lua_block`, ...
pub(crate) fn is_code_block(name: &str) -> bool {
    name.ends_with("_by_lua_block")
}

/// Index of the `}` that closes the code. `start` is the index after its `{`.
pub(crate) fn closing_brace(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 1_usize;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'{' => {
                depth += 1;
                at + 1
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
                at + 1
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => match long_bracket(bytes, at + 2) {
                Some(level) => after_long_bracket(bytes, at + 2 + level + 2, level)?,
                None => bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |index| at + index + 1),
            },
            b'[' => match long_bracket(bytes, at) {
                Some(level) => after_long_bracket(bytes, at + level + 2, level)?,
                None => at + 1,
            },
            b'"' | b'\'' => after_string(bytes, at),
            _ => at + 1,
        };
    }
    None
}

/// The number of `=` in an opening long bracket `[==[` at `at`.
fn long_bracket(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) != Some(&b'[') {
        return None;
    }
    let level = bytes[at + 1..].iter().take_while(|&&byte| byte == b'=').count();
    (bytes.get(at + 1 + level) == Some(&b'[')).then_some(level)
}

/// The index after the closing bracket of that level.
fn after_long_bracket(bytes: &[u8], from: usize, level: usize) -> Option<usize> {
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|&byte| byte == b']')?;
        let equals = bytes[at + 1..].iter().take(level + 1).take_while(|&&byte| byte == b'=').count();
        if equals == level && bytes.get(at + 1 + level) == Some(&b']') {
            return Some(at + level + 2);
        }
        at += 1;
    }
}

/// The index after a short string. A quote that is not closed on its line is an ordinary character.
fn after_string(bytes: &[u8], open: usize) -> usize {
    let quote = bytes[open];
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'\n' => return open + 1,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    open + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn braces_in_strings_and_comments_do_not_count() {
        for code in [
            " ngx.say('}') }",
            " ngx.say(\"\\\"}\") }",
            " local t = { a = { 1 } } }",
            " -- }\n x = 1 }",
            " --[[ } ]] }",
            " --[==[ } ]] ]=] } ]==] }",
            " s = [[ } ]] }",
            " s = [=[ ]] } ]=] }",
            " t[1] = t[t[1]] }",
            "}",
        ] {
            assert_eq!(closing_brace(code, 0), Some(code.len() - 1), "{code}");
        }
        for code in ["", " {", " '}' ", " --[[ } ", " -- }", " [==[ } ]]"] {
            assert_eq!(closing_brace(code, 0), None, "{code}");
        }
    }

    proptest! {
        #[test]
        fn the_result_is_the_index_of_a_brace(code in "[-{}\\[\\]='\"\\\\\n a]{0,40}") {
            if let Some(at) = closing_brace(&code, 0) {
                prop_assert_eq!(&code[at..=at], "}");
            }
        }
    }
}
