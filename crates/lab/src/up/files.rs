//! The files of a scenario.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, lchown};
use std::path::Path;

use super::builder::Builder;
use crate::error::LabError;
use crate::scenario::document::FileSpec;
use crate::scenario::placeholder;
use crate::server;

impl Builder<'_, '_> {
    /// Writes the files.
    pub(super) fn files(&mut self) -> Result<(), LabError> {
        let scenario = self.scenario;
        if scenario.files.is_empty() {
            return Ok(());
        }
        self.step("files", |_| ())?;
        let run = self.dir.run_path();
        let run_text = run.display().to_string();
        for file in &scenario.files {
            let path = run.join(&file.path);
            let owner = match file.user.as_deref() {
                Some(name) => {
                    let wrong = || LabError::Scenario(format!("file \"{}\": there is no user \"{name}\"", file.path));
                    Some(server::find_user(Some(name)).ok_or_else(wrong)?)
                }
                None => None,
            };
            let owner = owner.map(|user| (user.uid, user.gid));
            if let Some(parent) = path.parent() {
                make_directories(&run, parent, owner).map_err(LabError::io("cannot make", parent))?;
            }
            let values = self.values(&run_text, None);
            let content = file.content.as_deref().map(|content| placeholder::expand(content, &values)).transpose();
            let content = content.map_err(|why| LabError::Scenario(format!("file \"{}\": {why}", file.path)))?;
            write_file(&path, file, content.as_deref()).map_err(LabError::io("cannot write", &path))?;
            give(&path, owner).map_err(LabError::io("cannot give to its owner", &path))?;
        }
        Ok(())
    }
}

fn give(path: &Path, owner: Option<(u32, u32)>) -> std::io::Result<()> {
    owner.map_or(Ok(()), |(user, group)| lchown(path, Some(user), Some(group)))
}

fn make_directories(root: &Path, directory: &Path, owner: Option<(u32, u32)>) -> std::io::Result<()> {
    let mut path = root.to_owned();
    for part in directory.strip_prefix(root).unwrap_or(Path::new("")) {
        path.push(part);
        match fs::DirBuilder::new().mode(0o755).create(&path) {
            Ok(()) => {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
                give(&path, owner)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn write_file(path: &Path, spec: &FileSpec, content: Option<&str>) -> std::io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    match (content, spec.size) {
        (Some(content), _) => file.write_all(content.as_bytes())?,
        (None, size) => write_noise(&mut file, size.map_or(0, |size| size.0))?,
    }
    file.set_permissions(fs::Permissions::from_mode(spec.mode.map_or(0o644, |mode| mode.0)))
}

/// Incompressible bytes, always the same (xorshift64, Marsaglia 2003).
fn write_noise(file: &mut fs::File, bytes: u64) -> std::io::Result<()> {
    let mut word = 0x9e37_79b9_7f4a_7c15_u64;
    let mut left = bytes;
    while left > 0 {
        let mut block = Vec::with_capacity(8192);
        for _ in 0..1024 {
            word ^= word << 13;
            word ^= word >> 7;
            word ^= word << 17;
            block.extend_from_slice(&word.to_le_bytes());
        }
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(block.len());
        file.write_all(&block[..length])?;
        left -= length as u64;
    }
    Ok(())
}
