//! Services that would be heavy in every component. They compute for it, so their time is its compute time, and they run
//! where blocking holds up no wire.

use std::time::Instant;

use super::caps::violation;
use super::limits;
use super::state::State;
use crate::services::{schema, synthesis, text};

impl State {
    pub(super) async fn compute<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> wasmtime::Result<T> {
        self.run()?;
        let began = Instant::now();
        let left = self.clock.left();
        let working = tokio::task::spawn_blocking(work);
        let done = tokio::time::timeout(left, working).await;
        if !self.clock.charge(began.elapsed()) || done.is_err() {
            return Err(violation(format!("it used more than {} s of compute", limits::COMPUTE.as_secs())));
        }
        match done {
            Ok(Ok(value)) => Ok(value),
            _ => Err(violation("a service of the host failed")),
        }
    }

    pub(super) async fn validate(
        &mut self,
        schema: String,
        instance: String,
    ) -> wasmtime::Result<Result<(), Vec<String>>> {
        self.compute(move || {
            let parse = |what: &str, text: &str| {
                serde_json::from_str::<serde_json::Value>(text)
                    .map_err(|_| vec![format!("the {what} is no readable JSON")])
            };
            schema::validate(&parse("schema", &schema)?, &parse("instance", &instance)?)
        })
        .await
    }

    pub(super) async fn check_schema(&mut self, schema: String) -> wasmtime::Result<Result<(), String>> {
        self.compute(move || {
            let schema: serde_json::Value =
                serde_json::from_str(&schema).map_err(|_| "the schema is no readable JSON".to_owned())?;
            schema::check(&schema)
        })
        .await
    }

    pub(super) async fn example(&mut self, schema: String) -> wasmtime::Result<Option<String>> {
        self.compute(move || {
            let schema: serde_json::Value = serde_json::from_str(&schema).ok()?;
            synthesis::example(&schema).map(|value| value.to_string())
        })
        .await
    }

    pub(super) async fn counterexample(&mut self, schema: String) -> wasmtime::Result<Option<String>> {
        self.compute(move || {
            let schema: serde_json::Value = serde_json::from_str(&schema).ok()?;
            synthesis::counterexample(&schema).map(|value| value.to_string())
        })
        .await
    }

    pub(super) async fn matches(
        &mut self,
        pattern: String,
        subject: String,
        dialect: text::Dialect,
    ) -> wasmtime::Result<Result<bool, String>> {
        self.compute(move || text::matches(&pattern, &subject, dialect)).await
    }
}
