//! `mcpeval guidance`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};

use super::components::ListFormat;
use super::options::{TargetOptions, label};
use super::settings::Settings;
use super::visit::Visit;
use crate::error::Result;
use crate::guidance::{self, MAX_SETTLE_MS, Order, Profile, SETTLE_MS};
use crate::report::document::Label;
use crate::report::output;

const EXAMPLE: &str = "\
Example:
  mcpeval guidance --require-tool search -- node dist/index.js

Exit codes:
  0  every required tool is listed in every profile
  1  a required tool is missing in a profile
  2  usage: arguments
  3  no verdict: unreachable target, incomplete profile, exhausted budget
  130, 143  ended by SIGINT, SIGTERM";

/// Compare what a server tells its clients to call with what it lists for them
///
/// Opens one session per profile of client capabilities and lists its tools; none is called.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLE,
    override_usage = "mcpeval guidance [OPTIONS] <--target <NAME> | --url <URL> | -- CMD [ARGS]...>",
    group = ArgGroup::new("guided").required(true).args(TargetOptions::CHOICE)
)]
pub(super) struct Guidance {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    options: GuidanceOptions,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Profiles")]
struct GuidanceOptions {
    /// Capabilities that a client declares; repeatable [default: all five]
    #[arg(long, value_name = "P", value_parser = profile())]
    profile: Vec<Profile>,
    /// Tool that every profile must list; repeatable
    #[arg(long, value_name = "NAME", value_parser = label)]
    require_tool: Vec<Label>,
    /// Wait between the opening and the listing, 0 to 5000 milliseconds
    #[arg(long, value_name = "MS", default_value_t = SETTLE_MS, value_parser = clap::value_parser!(u32).range(..=i64::from(MAX_SETTLE_MS)))]
    settle_ms: u32,
    /// Rendering of the result
    #[arg(long, value_enum, default_value_t = ListFormat::Text, value_name = "F")]
    format: ListFormat,
}

fn profile() -> impl TypedValueParser<Value = Profile> {
    let words = PossibleValuesParser::new(Profile::ALL.map(Profile::word));
    words.try_map(|word| Profile::ALL.into_iter().find(|profile| profile.word() == word).ok_or("no profile"))
}

impl Guidance {
    pub(super) fn run(&self, settings: &Settings) -> Result<u8> {
        let chosen = self.target.resolve(settings)?;
        let GuidanceOptions { profile, require_tool, settle_ms, format } = &self.options;
        let profiles: &[Profile] = if profile.is_empty() { &Profile::ALL } else { profile };
        let order = Order {
            server: chosen.server,
            profiles: profiles.iter().copied().collect(),
            required_tools: require_tool.iter().cloned().collect(),
            settle_ms: *settle_ms,
        };
        let visit = Visit { settings, target: chosen.target, startup_timeout: chosen.startup_timeout, run_log: None };
        let work = async |site: &_, sink| guidance::guidance(site, order, sink).await;
        let found = visit.run(work, |found| &found.warnings)?;
        let text = match format {
            ListFormat::Text => guidance::text(&found.guidance),
            ListFormat::Json => found.guidance.to_json()?,
        };
        output::stdout(text.as_bytes())?;
        Ok(found.guidance.exit_code())
    }
}
