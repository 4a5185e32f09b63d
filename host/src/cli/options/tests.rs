//! Options over a configuration: what is given wins, the rest comes from the file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Parser};

use super::*;
use crate::arguments::Arguments;
use crate::cli::settings::Settings;
use crate::config::Config;
use crate::error::Result;
use crate::notation::{Document, Notation};
use crate::report::output::{Inputs, Places};
use crate::runner::Target;
use crate::wire::launch::Launch;

const FILE: &str = r#"
[defaults]
lanes = 2
startup_timeout = 10
brief = true
price_per_mtok = 3

[targets.shop]
command = ["node", "dist/index.js"]
cwd = "server"
env = { LOG = "off", KEPT = "yes" }
server = "Shop.1"
skip_tools = ["slow_export", "audit"]
confirm_read_only = true
startup_timeout = 60

[targets.plain]
command = ["node"]

[targets.cloud]
url = "https://mcp.example.com/mcp"
headers_env = { Authorization = "MCPEVAL_TEST_SURELY_UNSET" }

[targets.near]
url = "http://127.0.0.1:1/mcp"
"#;

#[derive(Debug, Parser)]
#[command(group = ArgGroup::new("choice").required(true).args(TargetOptions::CHOICE))]
struct Line {
    #[command(flatten)]
    target: TargetOptions,
    #[command(flatten)]
    battery: BatteryOptions,
    #[command(flatten)]
    floors: FloorOptions,
    #[command(flatten)]
    report: ReportOptions,
    #[command(flatten)]
    run_log: RunLogOptions,
}

fn settings(text: &str) -> Settings {
    let document = Document::parse("mcpeval.toml", text, Notation::Toml).unwrap();
    Settings { config: Config::parse(&document, Path::new("/base")).unwrap(), ..Settings::default() }
}

fn line(words: &str) -> Line {
    Line::try_parse_from(format!("x {words}").split_whitespace()).unwrap_or_else(|error| panic!("{words}: {error}"))
}

fn launch(words: &str) -> Launch {
    match line(words).target.resolve(&settings(FILE)).unwrap().target {
        Target::Stdio(launch) => launch,
        other @ Target::Http(_) => panic!("{other:?}"),
    }
}

fn fault(words: &str) -> String {
    line(words).target.resolve(&settings(FILE)).map(|chosen| format!("{chosen:?}")).expect_err(words).to_string()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

#[test]
fn a_named_target_is_what_the_file_says() {
    let shop = launch("--target shop");
    assert_eq!((shop.program, shop.args), ("node".into(), vec!["dist/index.js".into()]));
    assert_eq!(shop.cwd, Some(PathBuf::from("/base/server")));
    assert_eq!(shop.env, pairs(&[("KEPT", "yes"), ("LOG", "off")]));
    assert_eq!(launch("--target plain").cwd, Some(PathBuf::from("/base")), "commands mean the same from everywhere");
}

#[test]
fn given_options_win_and_variables_merge() {
    let shop = launch("--target shop --cwd here --env LOG=all --env MORE=1");
    assert_eq!(shop.cwd, Some(PathBuf::from("here")));
    // The last of a name is what the child gets.
    assert_eq!(shop.env, pairs(&[("KEPT", "yes"), ("LOG", "off"), ("LOG", "all"), ("MORE", "1")]));
}

#[test]
fn no_child_inherits_the_value_of_a_header() {
    for words in ["--target shop", "-- node"] {
        assert_eq!(launch(words).withheld, [OsString::from("MCPEVAL_TEST_SURELY_UNSET")], "{words}");
    }
}

#[test]
fn labels_and_waits_have_an_order() {
    let settings = settings(FILE);
    let chosen = |words: &str| {
        let line = line(words);
        let chosen = line.target.resolve(&settings).unwrap();
        (chosen.server.to_string(), chosen.startup_timeout.as_secs())
    };
    assert_eq!(chosen("--target shop"), ("Shop.1".to_owned(), 60));
    assert_eq!(chosen("--target plain"), ("plain".to_owned(), 10));
    assert_eq!(chosen("--target shop --server mine --startup-timeout 5"), ("mine".to_owned(), 5));
    assert_eq!(chosen("-- node"), ("probed".to_owned(), 10));
    let wait = line("-- node").target.resolve(&Settings::default()).unwrap().startup_timeout;
    assert_eq!(wait, Duration::from_secs(30));
}

#[test]
fn what_does_not_fit_a_target_is_refused() {
    for (words, wanted) in [
        ("--target shpo", "--target: there is no target \"shpo\"; the nearest is \"shop\""),
        ("--target shop --allow-remote-http", "--allow-remote-http and --header-env are for a url"),
        ("--target shop --header-env A=B", "--allow-remote-http and --header-env are for a url"),
        ("--target near --cwd a", "--cwd and --env are for a command"),
        ("--target near --env A=b", "--cwd and --env are for a command"),
        ("--target shop --env =s3cret", "--env wants KEY=VALUE"),
        ("--target cloud --allow-remote-http", "headers_env Authorization: the variable MCPEVAL_TEST_SURELY_UNSET"),
        ("--target near --header-env A=MCPEVAL_TEST_SURELY_UNSET", "--header-env A: the variable"),
        ("--target near --header-env A=X --header-env a=Y", "--header-env a is given twice"),
    ] {
        let fault = fault(words);
        assert!(fault.starts_with(wanted) && !fault.contains("s3cret"), "{words}: {fault}");
    }
    for words in
        ["--target shop --url http://127.0.0.1:1/", "--target shop -- node", "--url http://127.0.0.1:1/ --cwd a"]
    {
        assert!(Line::try_parse_from(format!("x {words}").split_whitespace()).is_err(), "{words}");
    }
}

#[test]
fn a_remote_target_needs_permission_on_the_line() {
    let text = "[targets.far]\nurl = \"https://mcp.example.com/mcp\"\n";
    let reach = |words: &str| line(words).target.resolve(&settings(text)).map(|chosen| format!("{:?}", chosen.target));
    let fault = reach("--target far").unwrap_err().to_string();
    assert!(fault.contains("--allow-remote-http"), "{fault}");
    assert!(reach("--target far --allow-remote-http").unwrap().contains("mcp.example.com"));
}

#[test]
fn choices_of_the_battery_come_from_the_target_and_the_defaults() {
    let settings = settings(FILE);
    let profile = |words: &str| {
        let line = line(words);
        let named = line.target.resolve(&settings).unwrap().named;
        line.battery.profile(&settings, named, &Arguments::default())
    };
    let shop = profile("--target shop");
    assert_eq!((shop.lanes, shop.attested_read_only), (2, true));
    assert_eq!(shop.skip_tools, ["audit", "slow_export"]);
    let given = profile("--target shop --skip-tool other --lanes 9");
    assert_eq!(
        (given.lanes, given.skip_tools),
        (9, vec!["other".to_owned()]),
        "a given list replaces that of the file"
    );
    let plain = profile("-- node");
    assert_eq!((plain.lanes, plain.attested_read_only, plain.skip_tools.len()), (2, false, 0));
    assert_eq!(line("-- node").battery.profile(&Settings::default(), None, &Arguments::default()).lanes, 4);
}

#[test]
fn the_file_names_the_renderings_that_there_are() {
    use clap::ValueEnum as _;
    let names: Vec<String> = super::report::Format::value_variants()
        .iter()
        .filter_map(|format| format.to_possible_value().map(|value| value.get_name().to_owned()))
        .collect();
    assert_eq!(names, crate::config::FORMATS);
}

#[test]
fn renderings_come_from_the_defaults() {
    let inputs = Inputs::default();
    let outputs = |words: &str| line(words).report.outputs(&settings(FILE), &mut Places::new(&inputs)).unwrap();
    let given = outputs("--price-per-mtok 5 --full -- node");
    let outputs = outputs("-- node --x");
    assert_eq!((outputs.options.brief, outputs.options.full, outputs.options.price_per_mtok), (true, false, Some(3.0)));
    assert_eq!((given.options.full, given.options.price_per_mtok), (true, Some(5.0)));
}

#[test]
fn files_that_are_named_are_those_that_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("corpus.json", r#"{"schema": "mcpeval.corpus/v1", "entries": []}"#);
    let read = |words: &str, settings: &Settings| -> Result<_> {
        let line = line(words);
        let named = line.target.resolve(settings)?.named;
        Ok((line.floors.corpus(settings)?, line.battery.standard(settings)?, line.battery.arguments(named)?))
    };
    let none = Settings::default();
    assert!(read("-- node", &none).unwrap().0.is_none());
    let home = Settings { home: Some(folder.path().to_owned()), ..Settings::default() };
    assert!(read("-- node", &home).unwrap().0.is_some(), "the home folder's corpus");
    for (text, missing) in [
        ("[defaults]\nstandard = \"no.toml\"\n[targets.a]\ncommand = [\"node\"]\n", "/base/no.toml"),
        ("[defaults]\ncorpus = \"no.json\"\n[targets.a]\ncommand = [\"node\"]\n", "/base/no.json"),
        ("[targets.a]\ncommand = [\"node\"]\narguments = \"no.yaml\"\n", "/base/no.yaml"),
    ] {
        let fault = read("--target a", &settings(text)).unwrap_err().to_string();
        assert!(fault.starts_with(missing), "{fault}");
        let corpus = folder.path().join("corpus.json").display().to_string();
        let given = format!("--target a --corpus {corpus} --arguments {corpus} --standard /given/standard.toml");
        let fault = read(&given, &settings(text)).unwrap_err().to_string();
        assert!(fault.starts_with("/given/standard.toml"), "{fault}");
    }
}

#[test]
fn a_run_log_stays_out_of_the_home_folder_wherever_that_is() {
    let folder = tempfile::tempdir().unwrap();
    let (home, elsewhere) = (folder.path().join("home"), folder.path().join("elsewhere"));
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(home.join("log"), elsewhere.join("link")).unwrap();
    let settings = Settings { home: Some(home.clone()), ..Settings::default() };
    let inputs = Inputs::default();
    let destination = |path: &Path| {
        let options = line(&format!("--run-log {} -- node", path.display())).run_log;
        options.destination(&settings, &mut Places::new(&inputs)).map(|destination| destination.is_some())
    };
    for path in [home.join("log"), elsewhere.join("link")] {
        assert!(destination(&path).unwrap_err().to_string().contains("mcpeval's own folder"));
    }
    assert!(destination(&elsewhere.join("log")).unwrap());
}
