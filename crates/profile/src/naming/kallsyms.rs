//! Names of kernel addresses, from `/proc/kallsyms`.

/// Maximum number of symbols; a distribution kernel with all its modules has about 300,000.
const SYMBOLS_MAX: usize = 4 << 20;
/// An address further than this behind the last symbol has no name.
const REACH: u64 = 1 << 20;

/// The kernel's functions. The text has hundreds of thousands of lines, so only their places are kept.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms<'a> {
    text: &'a str,
    /// In address order; of several at one address the best comes last.
    functions: Vec<Function>,
    /// True if all addresses are zero: the kernel hides them from this user.
    pub(crate) hidden: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    address: u64,
    /// How good the name is, compared with others of the same address: global ones are better, then those with fewer underscores in front.
    rank: u8,
    /// Where its line begins.
    line: u32,
}

impl<'a> Kallsyms<'a> {
    /// Parses lines such as "ffffffff81000000 T name\t[module]". Others are skipped.
    pub(crate) fn parse(text: &'a str) -> Self {
        let mut kallsyms = Self { text, ..Self::default() };
        let mut next = 0;
        for line in text.split_inclusive('\n').take(SYMBOLS_MAX) {
            let begin = next;
            next += line.len();
            let Some((address, is_global, name, _)) = function(line) else { continue };
            if address == 0 {
                kallsyms.hidden = true;
            } else if let Ok(line) = u32::try_from(begin) {
                let rank = (u8::from(is_global) << 7) | (0x7f - underscores(name).min(0x7f) as u8);
                kallsyms.functions.push(Function { address, rank, line });
            }
        }
        kallsyms.hidden &= kallsyms.functions.is_empty();
        kallsyms.functions.sort_unstable();
        kallsyms
    }

    /// Name and module of the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<(&'a str, &'a str)> {
        let behind = self.functions.partition_point(|function| function.address <= address);
        let found = self.functions.get(behind.checked_sub(1)?)?;
        let is_near = behind < self.functions.len() || address - found.address < REACH;
        let (_, _, name, module) = function(self.text.get(found.line as usize..)?.lines().next()?).filter(|_| is_near)?;
        Some((name, module))
    }
}

/// Address, whether it is global, name and module of a function's line.
fn function(line: &str) -> Option<(u64, bool, &str, &str)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let kind = fields.next().filter(|kind| ["t", "T", "w", "W"].contains(kind))?;
    let name = fields.next()?;
    Some((address, kind == "T", name, fields.next().map_or("kernel", |module| module.trim_matches(['[', ']']))))
}

/// Number of leading underscores. Of several names for one address people know the plain one.
pub(crate) fn underscores(name: &str) -> usize {
    name.len() - name.trim_start_matches('_').len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T __alias
ffffffff81000000 T plain
ffffffff81000000 t local
ffffffff81000100 D data
ffffffff81000200 t second
ffffffffc0001000 t in_module\t[nf_conntrack]
garbage
";

    #[test]
    fn functions_are_found_with_their_modules() {
        let kallsyms = Kallsyms::parse(TEXT);
        assert_eq!(kallsyms.find(0xffff_ffff_8100_0000), Some(("plain", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_8100_01ff), Some(("plain", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_8100_0200), Some(("second", "kernel")));
        assert_eq!(kallsyms.find(0xffff_ffff_c000_1001), Some(("in_module", "nf_conntrack")));
        assert_eq!(kallsyms.find(0xffff_ffff_c000_1000 + REACH), None);
        assert_eq!(kallsyms.find(17), None);
        assert!(!kallsyms.hidden);
    }

    #[test]
    fn hidden_addresses_differ_from_missing_ones() {
        assert!(Kallsyms::parse("0000000000000000 T a\n0000000000000000 t b\n").hidden);
        assert!(!Kallsyms::parse("").hidden);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed(text in "[0-9a-f]{0,17} ?[tTD]? ?[a-z_]{0,5}\n?[\\PC\n]{0,60}", address: u64) {
            Kallsyms::parse(&text).find(address);
        }
    }
}
