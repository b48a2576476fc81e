//! Expressions in unwind tables (DWARF 5, 2.5 and 6.4): one that jumps may never end, and who evaluates them here counts no steps.

use std::collections::HashMap;

use addr2line::gimli::{
    BaseAddresses, CallFrameInstruction, CieOrFde, CommonInformationEntry, EhFrame, EndianSlice, LittleEndian, Operation, UnwindExpression,
    UnwindSection,
};

use crate::unwinding::tables::Section;

/// Longest expression. Those of compilers have some ten bytes, and each stack evaluates one for each of its frames.
const EXPRESSION_BYTES_MAX: usize = 1_024;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// True if all expressions of the table end: none of them jumps or calls. Compilers and linkers write no such ones. A table that cannot be read to its end counts as one that
/// does not.
pub(crate) fn all_end(frames: &Section) -> bool {
    let table = EhFrame::new(&frames.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(frames.range.start);
    let mut entries = table.entries(&bases);
    // Hundreds of thousands of functions share a few of them.
    let mut common = HashMap::new();
    loop {
        let ends = match entries.next() {
            Ok(None) => return true,
            Ok(Some(CieOrFde::Cie(cie))) => {
                let mut instructions = cie.instructions(&table, &bases);
                end(&table, || instructions.next(), cie.encoding())
            }
            Ok(Some(CieOrFde::Fde(partial))) => match partial.parse(|table, bases, offset| {
                if let Some(known) = common.get(&offset) {
                    return Ok(CommonInformationEntry::clone(known));
                }
                let read = table.cie_from_offset(bases, offset)?;
                common.insert(offset, read.clone());
                Ok(read)
            }) {
                Ok(fde) => {
                    let mut instructions = fde.instructions(&table, &bases);
                    end(&table, || instructions.next(), fde.cie().encoding())
                }
                // Nor can it be read by who looks for a function.
                Err(_) => true,
            },
            Err(_) => false,
        };
        if !ends {
            return false;
        }
    }
}

/// True if the expressions of these instructions end. What cannot be read is not executed either.
fn end<'a>(
    table: &EhFrame<Slice<'a>>,
    mut next: impl FnMut() -> addr2line::gimli::Result<Option<CallFrameInstruction<usize>>>,
    encoding: addr2line::gimli::Encoding,
) -> bool {
    while let Ok(Some(instruction)) = next() {
        let expression = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => expression,
            _ => continue,
        };
        if !ends(table, &expression, encoding) {
            return false;
        }
    }
    true
}

fn ends(table: &EhFrame<Slice<'_>>, expression: &UnwindExpression<usize>, encoding: addr2line::gimli::Encoding) -> bool {
    let Ok(expression) = expression.get(table) else { return false };
    let mut bytes = expression.0;
    if bytes.len() > EXPRESSION_BYTES_MAX {
        return false;
    }
    while !bytes.is_empty() {
        match Operation::parse(&mut bytes, encoding) {
            Ok(Operation::Bra { .. } | Operation::Skip { .. } | Operation::Call { .. }) | Err(_) => return false,
            Ok(_) => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with one CIE (System V ABI for x86-64, 3.7) whose instructions are these.
    fn table(instructions: &[u8]) -> Section {
        let mut entry = vec![0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b];
        entry.extend_from_slice(instructions);
        while entry.len() % 4 != 0 {
            entry.push(0);
        }
        let mut bytes = u32::try_from(entry.len()).unwrap().to_le_bytes().to_vec();
        bytes.extend(entry);
        bytes.extend([0; 4]);
        Section { range: 0x1000..0x1000 + bytes.len() as u64, bytes: bytes.into() }
    }

    #[test]
    fn a_table_whose_expressions_jump_is_not_used() {
        // DW_CFA_def_cfa: rsp+8. What linkers write for calls through the PLT: no jump.
        assert!(all_end(&table(&[0x0c, 7, 8])));
        assert!(all_end(&table(&[0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22])));
        // DW_OP_skip -3; DW_OP_lit1 and DW_OP_bra -4; the same as the rule of a register.
        assert!(!all_end(&table(&[0x0f, 3, 0x2f, 0xfd, 0xff])));
        assert!(!all_end(&table(&[0x0f, 4, 0x31, 0x28, 0xfc, 0xff])));
        assert!(!all_end(&table(&[0x10, 3, 3, 0x2f, 0xfd, 0xff])));
        assert!(!all_end(&table(&[0x16, 3, 3, 0x2f, 0xfd, 0xff])));
        // Two thousand times DW_OP_nop.
        assert!(!all_end(&table(&[&[0x0f, 0xd0, 0x0f], [0x96; 2_000].as_slice()].concat())));
    }

    #[test]
    fn the_tables_of_this_program_are_used() {
        let program = std::fs::read("/proc/self/exe").unwrap();
        let image = crate::unwinding::image::Image::new("self".to_owned(), 0, crate::unwinding::tables::Bytes::Memory(program)).unwrap();
        assert!(all_end(image.eh_frame.as_ref().unwrap()));
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_tables_are_read_to_an_end(bytes: Vec<u8>) {
            let _ = all_end(&table(&bytes));
            let range = 0..bytes.len() as u64;
            let _ = all_end(&Section { range, bytes: bytes.into() });
        }
    }
}
