//! What one session of the demo remembers.

use std::collections::{BTreeMap, BTreeSet};

/// Most notes a session keeps.
const MAX_NOTES: usize = 1_000;
/// Most subscriptions a session keeps.
const MAX_SUBSCRIPTIONS: usize = 100;

/// A note.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) title: String,
    pub(super) text: String,
}

/// The state of one session.
#[derive(Debug)]
pub(super) struct Notebook {
    notes: BTreeMap<u64, Note>,
    next: u64,
    busy_asked: bool,
    refreshed: u64,
    subscriptions: BTreeSet<String>,
}

impl Default for Notebook {
    fn default() -> Self {
        let note = |title: &str, text: &str| Note { title: title.to_owned(), text: text.to_owned() };
        let notes = BTreeMap::from([
            (1, note("Tea", "Green tea, three minutes at 80 degrees.")),
            (2, note("Bread", "Flour, water, salt and a night of patience.")),
        ]);
        Self { notes, next: 3, busy_asked: false, refreshed: 0, subscriptions: BTreeSet::new() }
    }
}

impl Notebook {
    pub(super) fn notes(&self) -> impl Iterator<Item = (u64, &Note)> {
        self.notes.iter().map(|(id, note)| (*id, note))
    }

    pub(super) fn note(&self, id: u64) -> Option<&Note> {
        self.notes.get(&id)
    }

    /// Adds a note; none if the notebook is full.
    pub(super) fn write(&mut self, note: Note) -> Option<u64> {
        if self.notes.len() >= MAX_NOTES {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.notes.insert(id, note);
        Some(id)
    }

    /// Whether there was such a note.
    pub(super) fn delete(&mut self, id: u64) -> bool {
        self.notes.remove(&id).is_some()
    }

    /// Whether the busy job is done: every second time it is asked for.
    pub(super) fn poll_busy(&mut self) -> bool {
        let done = self.busy_asked;
        self.busy_asked = !done;
        done
    }

    /// How often the snapshots were taken anew.
    pub(super) fn refreshed(&self) -> u64 {
        self.refreshed
    }

    pub(super) fn refresh(&mut self) -> u64 {
        self.refreshed += 1;
        self.refreshed
    }

    /// Whether there was room for the subscription.
    pub(super) fn subscribe(&mut self, uri: String) -> bool {
        let room = self.subscriptions.len() < MAX_SUBSCRIPTIONS || self.subscriptions.contains(&uri);
        if room {
            self.subscriptions.insert(uri);
        }
        room
    }

    pub(super) fn unsubscribe(&mut self, uri: &str) {
        self.subscriptions.remove(uri);
    }

    pub(super) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscriptions.contains(uri)
    }
}
