//! Passwords in command lines whose options are not named as passwords: `mysql -pSECRET`, `curl -u user:SECRET`.

use super::{Value, is_blank, is_end, is_quote};

/// The position of an option's secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In the same word: `-pSECRET`.
    Attached,
    /// In the next word: `-a SECRET`.
    Next,
    /// After the user's name in the same or the next word: `-u user:SECRET`.
    User(u8),
}

/// Programs (by the beginning of their name), their options, and the position of the secret.
const OPTIONS: &[(&str, &str, Form)] = &[
    ("mysql", "-p", Form::Attached),
    ("mariadb", "-p", Form::Attached),
    ("mytop", "-p", Form::Attached),
    ("sshpass", "-p", Form::Attached),
    ("sshpass", "-p", Form::Next),
    ("mongo", "-p", Form::Attached),
    ("mongo", "-p", Form::Next),
    ("redis-cli", "-a", Form::Next),
    ("redis-cli", "--pass", Form::Next),
    ("valkey-cli", "-a", Form::Next),
    ("curl", "-u", Form::User(b':')),
    ("curl", "--user", Form::User(b':')),
    ("curl", "-U", Form::User(b':')),
    ("curl", "--proxy-user", Form::User(b':')),
    ("ab", "-A", Form::User(b':')),
    ("ab", "-P", Form::User(b':')),
    ("siege", "--login", Form::User(b':')),
    ("oha", "-a", Form::User(b':')),
    ("hey", "-a", Form::User(b':')),
    ("smbclient", "-U", Form::User(b'%')),
    ("ldap", "-w", Form::Next),
    ("sqlcmd", "-P", Form::Next),
];

/// Programs whose whole name must match, because other names begin alike.
const WHOLE_NAMES: &[&str] = &["ab", "hey", "oha", "curl"];

/// Longest program name that is examined, bytes.
const PROGRAM_MAX: usize = 64;

/// The programs whose options are being read: those named since the last line or shell separator.
#[derive(Default)]
pub(super) struct Command {
    /// One bit for each row of `OPTIONS`.
    rows: u32,
}

const _: () = assert!(OPTIONS.len() <= 32);

impl Command {
    /// Examines this byte: a program's name, or the end of a command. A backslash at a line's end continues the command.
    pub(super) fn step(&mut self, text: &[u8], at: usize) {
        match text[at] {
            b'\n' if at > 0 && text[at - 1] == b'\\' => {}
            b'\n' | b';' | b'|' => self.rows = 0,
            _ if at == 0 || is_break(text[at - 1]) || text[at - 1] == b'/' => {
                self.rows |= rows_of(word(&text[at..text.len().min(at + PROGRAM_MAX)]));
            }
            _ => {}
        }
    }

    /// The secret of the option that begins here.
    pub(super) fn value(&self, text: &[u8], at: usize) -> Option<Value> {
        if self.rows == 0 || text[at] != b'-' || !(at == 0 || is_break(text[at - 1])) {
            return None;
        }
        let word = word(&text[at..]);
        let rows = OPTIONS.iter().enumerate().filter(|(row, _)| self.rows & (1 << row) != 0);
        rows.map(|(_, row)| row).find_map(|(_, option, form)| {
            let attached = word.strip_prefix(option.as_bytes())?;
            let (start, end) = match (form, attached.first()) {
                (Form::Next, None) => next_word(text, at + word.len())?,
                (Form::User(_), None) => next_word(text, at + word.len())?,
                (Form::User(_), Some(b'=')) => (at + option.len() + 1, at + word.len()),
                (Form::Attached | Form::User(_), Some(_)) if option.len() == 2 => (at + option.len(), at + word.len()),
                _ => return None,
            };
            match form {
                Form::User(separator) => {
                    let user = text[start..end].iter().position(|byte| byte == separator)?;
                    Value::new(start + user + 1, end)
                }
                _ => Value::new(start, end),
            }
        })
    }
}

fn is_break(byte: u8) -> bool {
    is_blank(byte) || is_end(byte) || is_quote(byte) || b";|&(`=".contains(&byte)
}

/// The word at the beginning.
fn word(text: &[u8]) -> &[u8] {
    const WORD_MAX: usize = 4096;
    let length = text.iter().take(WORD_MAX).take_while(|byte| !is_blank(**byte) && !is_end(**byte) && !is_quote(**byte)).count();
    &text[..length]
}

/// The word after the blanks or the argument's end here, if it is not another option.
fn next_word(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let gap = text[at..].iter().take(64).take_while(|byte| is_blank(**byte) || **byte == 0 || is_quote(**byte)).count();
    let start = at + gap;
    let word = word(text.get(start..)?);
    (gap > 0 && !word.is_empty() && word[0] != b'-').then_some((start, start + word.len()))
}

fn rows_of(name: &[u8]) -> u32 {
    let matches = |program: &str| {
        if WHOLE_NAMES.contains(&program) { name == program.as_bytes() } else { name.starts_with(program.as_bytes()) }
    };
    OPTIONS.iter().enumerate().filter(|(_, (program, ..))| matches(program)).fold(0, |rows, (row, _)| rows | 1 << row)
}

#[cfg(test)]
mod tests {
    use super::super::rewrite;
    use crate::redact::Hidden;

    fn hidden(text: &str) -> String {
        String::from_utf8(rewrite(text.as_bytes(), &mut Hidden::default())).unwrap()
    }

    #[test]
    fn passwords_of_known_programs_are_redacted() {
        for (from, to) in [
            ("mysql -uroot -ps3cret db", "mysql -uroot -p[redacted] db"),
            ("/usr/bin/mysqldump\0-ps3cret\0db", "/usr/bin/mysqldump\0-p[redacted]\0db"),
            ("sh\0-c\0mysql -ps3cret | ps -pfoo", "sh\0-c\0mysql -p[redacted] | ps -pfoo"),
            ("mariadb-dump \\\n -px", "mariadb-dump \\\n -p[redacted]"),
            ("curl -u me:pw http://h", "curl -u me:[redacted] http://h"),
            ("curl\0-ume:pw\0--proxy-user=a:b\0--user\0c:d", "curl\0-ume:[redacted]\0--proxy-user=a:[redacted]\0--user\0c:[redacted]"),
            ("ab -A me:pw -n 1 http://h/", "ab -A me:[redacted] -n 1 http://h/"),
            ("redis-cli -h x -a pw ping", "redis-cli -h x -a [redacted] ping"),
            ("sshpass -p pw ssh x; sshpass -ppw", "sshpass -p [redacted] ssh x; sshpass -p[redacted]"),
        ] {
            assert_eq!(hidden(from), to, "{from:?}");
            assert_eq!(hidden(to), to, "twice: {from:?}");
        }
    }

    #[test]
    fn other_options_stay() {
        for same in [
            "mysql -p db",
            "mysql --port 3306",
            "nginx -pfoo",
            "php-fpm: master process (/etc/php/8.2/fpm/php-fpm.conf)",
            "nginx\0-g\0daemon off;\0",
            "curl -u me",
            "ps -pabc; mysql",
            "redis-cli -a -h",
            "grab -A me:pw",
        ] {
            assert_eq!(hidden(same), same);
        }
    }
}
