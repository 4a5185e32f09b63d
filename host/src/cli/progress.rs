//! A line that shows where a long evaluation stands.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::report::text::neutralised;
use crate::runner::Progress;

/// An evaluation shorter than this needs no progress.
const PATIENCE: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

/// A progress line on stderr, on a terminal only.
pub(super) struct Line {
    bar: Option<ProgressBar>,
}

impl Line {
    pub(super) fn new(quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        Self {
            bar: shown.then(|| {
                let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed_precise} {msg}") {
                    bar.set_style(style);
                }
                bar
            }),
        }
    }

    pub(super) fn update(&self, progress: &Progress) {
        if let Some(bar) = &self.bar {
            bar.set_message(message(progress));
        }
    }

    /// Shows the line once the work has taken a while, and takes it away when the work is done.
    pub(super) async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let Some(bar) = &self.bar else { return work.await };
        let _clear = Clear(bar);
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            result = &mut work => return result,
            () = tokio::time::sleep(PATIENCE) => {}
        }
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(TICK);
        work.await
    }
}

/// However the work ends, the line goes.
struct Clear<'a>(&'a ProgressBar);

impl Drop for Clear<'_> {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

fn message(progress: &Progress) -> String {
    let Progress { step, finished, total, requests: (spent, budget) } = progress;
    let step = neutralised(step);
    let of = if *total > 0 { format!(" {finished}/{total}") } else { String::new() };
    format!("{step}{of}, {spent} of {budget} requests")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_step_and_requests() {
        let mut progress = Progress { step: "cat\u{7}alog".to_owned(), finished: 3, total: 0, requests: (12, 4096) };
        assert_eq!(message(&progress), "cat\\u{7}alog, 12 of 4096 requests");
        progress.total = 9;
        assert_eq!(message(&progress), "cat\\u{7}alog 3/9, 12 of 4096 requests");
    }
}
