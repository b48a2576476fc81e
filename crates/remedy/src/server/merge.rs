//! Removing one change from a file that someone else has edited. The rest of the file stays to the byte.

use chokepoint_config::{merge, text};
use chokepoint_model::change::ServerSetting;

use super::configuration::Server;
use super::edit;
use super::file::real_path;
use super::view::View;
use crate::record::{Backup, Checksum, Intent};
use crate::setting::State;

/// The file's bytes without this change; unchanged where the setting has its old value already. The error is the setting's value, if someone else set
/// it, or why the change cannot be separated from the other edits.
pub(super) fn without(server: &Server, intent: &Intent, backup: &Backup, now: &[u8]) -> Result<Vec<u8>, String> {
    let (now_text, to) = (text::decode(now), intent.change.to());
    let view = server.view(backup.master.as_deref()).map_err(|_| "not readable".to_owned())?;
    let value_in = |text: &str| edit::value(&view, &server.main, &server.setting, &[(backup.path.clone(), text.to_owned())]);
    let found = value_in(&now_text).map_err(|_| "not readable".to_owned())?;
    if found == intent.was {
        return Ok(now.to_vec());
    }
    if found != to {
        return Err(found);
    }
    let is_old = |text: &String| value_in(text).is_ok_and(|value| value == intent.was);
    reversed(server, backup, &now_text, to)
        .filter(is_old)
        .or_else(|| with_old_value(server, &view, intent, backup, &now_text).filter(is_old))
        .map(|text| text::encode(&text))
        .ok_or_else(|| format!("{found}, and the changed lines were edited as well"))
}

/// The state of a setting whose file is neither as before the change nor as the change left it.
pub(super) fn state(server: &Server, intent: &Intent, backup: &Backup, now: &[u8]) -> State {
    match without(server, intent, backup, now) {
        // After an interrupted undo the value may be in the file and not in force.
        Ok(text) if text == now && !intent.restoring => State::Old,
        Ok(_) => State::Edited,
        Err(found) => State::Other(format!("{found} in a file that somebody edited since ({})", backup.path)),
    }
}

/// The exact reverse of the change: removes its additions and restores its deletions.
fn reversed(server: &Server, backup: &Backup, now: &str, to: &str) -> Option<String> {
    let with = server.edit(&backup.path, &backup.before, to).ok()?;
    let is_ours = backup.after.contains(&Checksum::of(&text::encode(&with)));
    if is_ours { merge::take_out(&backup.before, &with, now) } else { None }
}

/// The old value in place of the new one, for a directive that was moved. A directive that the change added may also be someone else's.
fn with_old_value(server: &Server, view: &View, intent: &Intent, backup: &Backup, now: &str) -> Option<String> {
    if intent.was == ServerSetting::UNSET {
        return None;
    }
    let over = [(backup.path.clone(), now.to_owned())];
    let edited = edit::edited(view, &server.main, &server.setting, &intent.was, &over).ok()?;
    (real_path(&edited.path).as_deref() == Some(backup.path.as_str())).then_some(edited.after)
}
