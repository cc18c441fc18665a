//! `ablate`: measures the benefit of each rule of the engine's timing. For one rule after the other, Tautline
//! runs beside itself without that rule, in interleaved pairs, in every environment of the chosen cells. A
//! ratio says how many times as good it is with the rule.
//!
//! A rule is switched off by a variable of one side's environment, `TAUT_WITHOUT=NAME`, which a library built
//! with the feature `ablation` reads. A rule `VARIABLE=VALUE` sets any other variable, so that every switch
//! of a library can be measured in the same way.

use crate::environment::Environment;
use crate::peer::Peer;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::statistics::{MATTERS, Standing};
use crate::table::{layout, ratio_text, three, unit};
use crate::{Arguments, Job, find_peers, write_results};
use serde::Serialize;
use std::path::Path;

/// Variable that a library with the feature `ablation` reads.
const SWITCH: &str = "TAUT_WITHOUT";
/// Number of environments in which a rule must win to stay.
const ENVIRONMENTS: usize = 2;

/// A rule in one cell, by one metric.
#[derive(Clone, Debug, Serialize)]
struct Line {
    rule: String,
    cell: String,
    environment: String,
    metric: String,
    /// Ratio of the metric with the rule to the metric without it. Above 1, the rule helps.
    ratio: f64,
    interval: (f64, f64),
    standing: Standing,
}

/// Summary of all cells of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Verdict {
    rule: String,
    /// Environments where it wins at least 5 %, statistically certain, in at least one cell, out of those
    /// where it ran.
    wins_in: Vec<String>,
    loses_in: Vec<String>,
    environments: usize,
    stays: bool,
}

/// Content of `ablation.json`.
#[derive(Serialize)]
struct Ablation {
    date: String,
    pairs: u32,
    environments: Vec<Environment>,
    verdicts: Vec<Verdict>,
    lines: Vec<Line>,
    problems: Vec<String>,
}

/// Runs each rule. Returns true if no message was lost and no run failed.
pub(crate) fn run(arguments: &Arguments) -> Result<bool, String> {
    if arguments.rules.is_empty() {
        return Err("ablate: which rules?".to_owned());
    }
    let whole = match arguments.named.as_slice() {
        [] => "tautline",
        [one] => one,
        _ => return Err("ablate: give only one --peer, which is compared with itself".to_owned()),
    };
    let sides: Vec<[String; 2]> = arguments
        .rules
        .iter()
        .map(|rule| Ok([without(whole, rule)?, whole.to_owned()]))
        .collect::<Result<_, String>>()?;
    let mut peers = Vec::new();
    for side in &sides {
        peers.push(find_peers(side, arguments)?.0);
    }
    if !arguments.rules.iter().all(|rule| is_variable(rule)) {
        peers.iter().flatten().try_for_each(knows_switch)?;
    }
    let job = Job::new(arguments, Scenario::read(&arguments.scenario)?, &arguments.out)?;
    let mut ablation = Ablation {
        date: crate::machine::date(),
        pairs: job.plan.pairs,
        environments: job.made.iter().map(|made| made.environment.clone()).collect(),
        verdicts: Vec::new(),
        lines: Vec::new(),
        problems: Vec::new(),
    };
    for (number, (rule, peers)) in arguments.rules.iter().zip(&peers).enumerate() {
        println!("{rule}, {} of {}", number + 1, arguments.rules.len());
        let results = job.measure(peers, Vec::new())?;
        let out = arguments.out.join(rule.replace(['=', '/'], "-"));
        std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
        write_results(&results, &out)?;
        let lines = lines_of(rule, &results);
        ablation.verdicts.push(verdict_of(rule, &lines));
        ablation.lines.extend(lines);
        ablation.problems.extend(results.problems.iter().map(|problem| format!("{rule}: {problem}")));
        // Write after each rule, so that an interrupted run keeps its measurements.
        write(&ablation, &arguments.out)?;
    }
    print!("{}", text(&ablation));
    println!("ablation: {}", arguments.out.join("ablation.json").display());
    Ok(ablation.problems.is_empty())
}

/// True if it is VARIABLE=VALUE.
fn is_variable(rule: &str) -> bool {
    rule.contains('=')
}

/// Returns the peer without the rule.
fn without(whole: &str, rule: &str) -> Result<String, String> {
    if rule.is_empty() || rule.contains(char::is_whitespace) {
        return Err(format!("ablate: `{rule}` is not a valid name of a rule"));
    }
    Ok(if is_variable(rule) { format!("{whole} {rule}") } else { format!("{whole} {SWITCH}={rule}") })
}

/// A library without the switch would run the same code on both sides, and every rule would seem to be
/// useless.
fn knows_switch(peer: &Peer) -> Result<(), String> {
    let file = peer.library.as_ref().map_or(&peer.program, |(_, library)| library);
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    if bytes.windows(SWITCH.len()).any(|window| window == SWITCH.as_bytes()) {
        return Ok(());
    }
    Err(format!("{} does not read {SWITCH}: build it with the feature `ablation`", file.display()))
}

fn lines_of(rule: &str, results: &Results) -> Vec<Line> {
    let Some(whole) = results.libraries.get(1) else { return Vec::new() };
    let sound = |ratio: &&crate::results::Ratio| {
        let figure = |library: &str| results.figure(&ratio.cell, library, &ratio.metric);
        results.libraries.iter().all(|library| figure(&library.name).is_some_and(|f| f.is_sound()))
    };
    let of_whole = results.ratios.iter().filter(|ratio| ratio.library == whole.name);
    of_whole
        .filter(sound)
        .map(|ratio| Line {
            rule: rule.to_owned(),
            cell: ratio.cell.in_default().title(),
            environment: ratio.cell.environment.clone(),
            metric: ratio.metric.clone(),
            ratio: ratio.ratio,
            interval: ratio.interval,
            standing: ratio.standing(),
        })
        .collect()
}

fn verdict_of(rule: &str, lines: &[Line]) -> Verdict {
    let places = |wanted: &dyn Fn(&Line) -> bool| {
        let mut places: Vec<String> = Vec::new();
        for line in lines.iter().filter(|line| wanted(line)) {
            if !places.contains(&line.environment) {
                places.push(line.environment.clone());
            }
        }
        places
    };
    let wins_in = places(&|line| line.standing == Standing::Won && line.interval.0 >= 1.0 + MATTERS);
    Verdict {
        rule: rule.to_owned(),
        loses_in: places(&|line| line.standing == Standing::Lost && line.interval.1 <= 1.0 - MATTERS),
        environments: places(&|_| true).len(),
        stays: wins_in.len() >= ENVIRONMENTS,
        wins_in,
    }
}

impl Verdict {
    fn text(&self) -> String {
        let named = |places: &[String]| {
            if places.is_empty() { String::new() } else { format!(" ({})", places.join(", ")) }
        };
        // A variable is a cost to report, and not a rule to keep or remove.
        let (wins, loses, end) = match (is_variable(&self.rule), self.stays) {
            (true, _) => ("costs", "gains", ""),
            (false, true) => ("wins", "loses", ": stays"),
            (false, false) => ("wins", "loses", ": goes"),
        };
        format!(
            "{}: {wins} >= 5 % beyond doubt in {} of {} environments{}, {loses} as much in {}{}{end}",
            self.rule,
            self.wins_in.len(),
            self.environments,
            named(&self.wins_in),
            self.loses_in.len(),
            named(&self.loses_in),
        )
    }
}

fn text(ablation: &Ablation) -> String {
    let priced = ablation.verdicts.iter().all(|verdict| is_variable(&verdict.rule));
    let (column, meaning) = match priced {
        true => ("without it", "without the variable than with it"),
        false => ("with the rule", "with the rule, or without the variable, than the other way"),
    };
    let head = ["rule", "cell", "environment", "metric", column, "95 %", "verdict"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(ablation.lines.iter().map(|line| {
        vec![
            line.rule.clone(),
            line.cell.clone(),
            line.environment.clone(),
            unit(&line.metric).0.replace('_', " "),
            format!("{}x", ratio_text(line.ratio)),
            format!("{}..{}", three(line.interval.0), three(line.interval.1)),
            line.standing.word().to_owned(),
        ]
    }));
    let mut text = layout(&rows, 4);
    text += &format!(
        "\n{} interleaved pairs a rule and cell. \"{column}\" says how many times as good it is {meaning}.\n",
        ablation.pairs
    );
    for environment in &ablation.environments {
        if let Some(reason) = &environment.absent {
            text += &format!("{}: NOT THERE: {reason}\n", environment.name);
        }
    }
    for problem in &ablation.problems {
        text += &format!("PROBLEM: {problem}\n");
    }
    for verdict in &ablation.verdicts {
        text += &verdict.text();
        text.push('\n');
    }
    text
}

fn write(ablation: &Ablation, out: &Path) -> Result<(), String> {
    let json = serde_json::to_string_pretty(ablation).map_err(|e| e.to_string())?;
    for (name, text) in [("ablation.json", json), ("ablation.txt", text(ablation))] {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::standing;

    fn line(environment: &str, interval: (f64, f64)) -> Line {
        Line {
            rule: "lull".to_owned(),
            cell: "PUSH/PULL tcp 64 B".to_owned(),
            environment: environment.to_owned(),
            metric: "messages_per_second".to_owned(),
            ratio: (interval.0 + interval.1) / 2.0,
            interval,
            standing: standing(interval),
        }
    }

    #[test]
    fn a_rule_is_a_name_or_any_variable() {
        assert_eq!(without("tautline", "lull").unwrap(), "tautline TAUT_WITHOUT=lull");
        assert_eq!(without("tautline A=1", "TAUT_SPIN_US=0").unwrap(), "tautline A=1 TAUT_SPIN_US=0");
        assert!(without("tautline", "two words").is_err());
    }

    #[test]
    fn a_variable_has_a_price() {
        let lines = [line("default", (1.06, 1.2)), line("veth", (0.99, 1.01))];
        assert_eq!(
            verdict_of("TAUT_OBSERVE=1", &lines).text(),
            "TAUT_OBSERVE=1: costs >= 5 % beyond doubt in 1 of 2 environments (default), gains as much in 0"
        );
    }

    #[test]
    fn a_rule_stays_that_wins_five_per_cent_beyond_doubt_in_two_environments() {
        let lines = [line("default", (1.06, 1.2)), line("default", (1.3, 1.4)), line("veth", (1.04, 1.5))];
        let verdict = verdict_of("lull", &lines);
        assert_eq!((verdict.wins_in.as_slice(), verdict.stays), (&["default".to_owned()][..], false));
        let lines = [&lines[..], &[line("one-core", (1.05, 1.1)), line("veth", (0.7, 0.95))]].concat();
        let verdict = verdict_of("lull", &lines);
        assert!(verdict.stays);
        assert_eq!(
            verdict.text(),
            "lull: wins >= 5 % beyond doubt in 2 of 3 environments (default, one-core), loses as much in 1 (veth): stays"
        );
    }
}
