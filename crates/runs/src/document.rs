//! Documents as they are kept: zlib (RFC 1950), bounded both ways.

use std::io::{self, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use crate::error::RunsError;

/// The longest document, bytes. A diagnosis has about 100 kB, a bench with 6,000 slices about 1 MB.
pub(crate) const DOCUMENT_BYTES_MAX: usize = 64 << 20;

fn pack(text: &str) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// A document of the user's, unless it is longer than the limit.
pub(crate) fn packed(document: &str) -> Result<Vec<u8>, RunsError> {
    if document.len() > DOCUMENT_BYTES_MAX {
        return Err(RunsError::TooLarge { bytes: document.len(), limit: DOCUMENT_BYTES_MAX });
    }
    pack(document).map_err(|error| RunsError::io("compress", Path::new("the document"), error))
}

/// The text, or why it is none.
pub(crate) fn unpack(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    let taken = ZlibDecoder::new(bytes).take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_string(&mut text);
    match taken {
        Ok(length) if length <= DOCUMENT_BYTES_MAX => Ok(text),
        Ok(_) => Err(format!("a document is longer than {DOCUMENT_BYTES_MAX} bytes")),
        Err(error) => Err(format!("a document cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_comes_back_and_damage_or_excess_is_an_error() {
        let text = "{\"a\": [1, 2, \"…\"]}".repeat(1000);
        let packed = pack(&text).unwrap();
        assert!(packed.len() < text.len() / 10);
        assert_eq!(unpack(&packed).unwrap(), text);
        for cut in 0..packed.len() {
            assert!(unpack(&packed[..cut]).is_err(), "cut at {cut}");
        }
        assert!(unpack(b"no zlib").is_err());
        let bomb = pack(&"0".repeat(DOCUMENT_BYTES_MAX + 1)).unwrap();
        assert!(bomb.len() < 1 << 20 && unpack(&bomb).unwrap_err().contains("longer"));
    }
}
