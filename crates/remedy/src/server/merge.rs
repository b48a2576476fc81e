//! A change in a file that somebody else edited since: it alone is taken out, and the rest of the file stays to the byte.

use chokepoint_config::{merge, text};
use chokepoint_model::change::ServerSetting;

use super::view::View;
use super::{Server, edit, real_path};
use crate::record::{Backup, Intent, Print};
use crate::setting::State;

/// The file's bytes with this change taken out; as they are where the setting has its old value already. The error is what the setting holds, where
/// that is no longer what the change set, or why the change cannot be told from the other edits.
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
    taken_out(server, backup, &now_text, to)
        .filter(is_old)
        .or_else(|| set_back(server, &view, intent, backup, &now_text).filter(is_old))
        .map(|text| text::encode(&text))
        .ok_or_else(|| format!("{found}, but the lines of the change were edited as well"))
}

/// How a setting stands whose file is neither as before the change nor as the change left it.
pub(super) fn state(server: &Server, intent: &Intent, backup: &Backup, now: &[u8]) -> State {
    match without(server, intent, backup, now) {
        // Where an undo was at it, the value may be in the file and not in force.
        Ok(text) if text == now && !intent.restoring => State::Old,
        Ok(_) => State::Edited,
        Err(found) => State::Other(format!("{found} in a file that someone edited since ({})", backup.path)),
    }
}

/// Exactly what the change did, undone: what it added goes, what it took away comes back.
fn taken_out(server: &Server, backup: &Backup, now: &str, to: &str) -> Option<String> {
    let with = server.edit(&backup.path, &backup.before, to).ok()?;
    let is_ours = backup.after.contains(&Print::of(&text::encode(&with)));
    if is_ours { merge::take_out(&backup.before, &with, now) } else { None }
}

/// The old value where the new one stands, for a directive that was moved. One that was not there before cannot be told from somebody else's.
fn set_back(server: &Server, view: &View, intent: &Intent, backup: &Backup, now: &str) -> Option<String> {
    if intent.was == ServerSetting::UNSET {
        return None;
    }
    let over = [(backup.path.clone(), now.to_owned())];
    let edited = edit::edited(view, &server.main, &server.setting, &intent.was, &over).ok()?;
    (real_path(&edited.path).as_deref() == Some(backup.path.as_str())).then_some(edited.after)
}
