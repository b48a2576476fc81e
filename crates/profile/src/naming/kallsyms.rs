//! Names of kernel addresses, from `/proc/kallsyms`.

use std::io::{BufRead, Read as _};

/// Maximum number of symbols; a distribution kernel with all its modules has about 300,000.
const SYMBOLS_MAX: usize = 4 << 20;
/// An address further than this behind the last symbol has no name.
const REACH: u64 = 1 << 20;
/// Maximum bytes kept of a line. The kernel's names have at most 512 (`KSYM_NAME_LEN`).
const LINE_BYTES_MAX: u64 = 4096;

/// The kernel's functions at given addresses. The text has hundreds of thousands of lines: it is read line by line, and no other name is kept.
#[derive(Debug, Default)]
pub(crate) struct Kallsyms {
    /// In ascending order.
    addresses: Vec<u64>,
    /// For each address, the best function that begins at or before it but behind the previous address.
    functions: Vec<Option<Function>>,
    /// Where the last function begins.
    last: u64,
    /// True if all addresses are zero: the kernel hides them from this user.
    pub(crate) hidden: bool,
    /// True if there was no text.
    pub(crate) is_empty: bool,
}

#[derive(Debug, Clone)]
struct Function {
    address: u64,
    /// How good the name is, compared with others of the same address: global ones are better, then those with fewer underscores in front.
    rank: u8,
    name: String,
    module: String,
}

impl Kallsyms {
    /// Reads lines such as "ffffffff81000000 T name\t[module]", of the functions that these addresses may be in. Others are skipped, and so is everything behind a
    /// line that cannot be read.
    pub(crate) fn read(mut text: impl BufRead, addresses: &[u64]) -> Self {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        addresses.dedup();
        let mut kallsyms = Self { functions: vec![None; addresses.len()], addresses, is_empty: true, ..Self::default() };
        let mut line = Vec::new();
        for _ in 0..SYMBOLS_MAX {
            line.clear();
            if !text.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                break;
            }
            kallsyms.is_empty = false;
            kallsyms.take(&String::from_utf8_lossy(&line));
            if !line.ends_with(b"\n") && text.skip_until(b'\n').is_err() {
                break;
            }
        }
        kallsyms.hidden &= kallsyms.last == 0;
        kallsyms
    }

    fn take(&mut self, line: &str) {
        let Some((address, is_global, name, module)) = function(line) else { return };
        self.hidden |= address == 0;
        if address == 0 {
            return;
        }
        self.last = self.last.max(address);
        let Some(known) = self.functions.get_mut(self.addresses.partition_point(|wanted| *wanted < address)) else { return };
        let rank = (u8::from(is_global) << 7) | (0x7f - underscores(name).min(0x7f) as u8);
        if known.as_ref().is_none_or(|known| (known.address, known.rank) <= (address, rank)) {
            *known = Some(Function { address, rank, name: name.to_owned(), module: module.to_owned() });
        }
    }

    /// Name and module of the function at one of the addresses.
    pub(crate) fn find(&self, address: u64) -> Option<(&str, &str)> {
        let behind = self.addresses.partition_point(|wanted| *wanted <= address);
        let found = self.functions.get(..behind)?.iter().rev().find_map(Option::as_ref)?;
        let is_near = address < self.last || address - found.address < REACH;
        is_near.then_some((found.name.as_str(), found.module.as_str()))
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
        let wanted =
            [0xffff_ffff_8100_0000, 0xffff_ffff_8100_01ff, 0xffff_ffff_8100_0200, 0xffff_ffff_c000_1001, 0xffff_ffff_c000_1000 + REACH, 17];
        let kallsyms = Kallsyms::read(TEXT.as_bytes(), &wanted);
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
        let hidden = Kallsyms::read("0000000000000000 T a\n0000000000000000 t b\n".as_bytes(), &[1]);
        let missing = Kallsyms::read("".as_bytes(), &[1]);
        assert_eq!([hidden.hidden, hidden.is_empty, missing.hidden, missing.is_empty], [true, false, false, true]);
    }

    proptest! {
        #[test]
        fn arbitrary_text_is_parsed(text in "[0-9a-f]{0,17} ?[tTD]? ?[a-z_]{0,5}\n?[\\PC\n]{0,60}", address: u64) {
            Kallsyms::read(text.as_bytes(), &[address]).find(address);
        }
    }
}
