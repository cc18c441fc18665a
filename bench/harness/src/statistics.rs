//! Medians, spreads, and confidence intervals.

/// Returns the median (of an even number, the mean of the two middle values); 0 for no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Returns the smallest and largest value; (0, 0) for no values.
pub(crate) fn range(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if values.is_empty() { (0.0, 0.0) } else { (low, high) }
}

/// Returns a 95 % bootstrap interval of the ratio of medians, `subject` to `reference`, both resampled
/// independently. The seed is fixed, so the same runs give the same interval.
pub(crate) fn ratio_interval(subject: &[f64], reference: &[f64]) -> (f64, f64) {
    const RESAMPLES: usize = 2000;
    if subject.is_empty() || reference.is_empty() {
        return (0.0, 0.0);
    }
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |values: &[f64]| {
        let picked: Vec<f64> = (0..values.len())
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                values[(state % values.len() as u64) as usize]
            })
            .collect();
        median(&picked)
    };
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| draw(subject) / draw(reference)).collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[RESAMPLES / 40], ratios[RESAMPLES - 1 - RESAMPLES / 40])
}

/// Verdict of a ratio's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The whole interval is on the good side of 1.
    Better,
    /// The interval contains 1: the runs do not decide.
    Open,
    /// The whole interval is on the bad side.
    Worse,
}

/// Reads an interval; `smaller_is_better` for times.
pub(crate) fn verdict(interval: (f64, f64), smaller_is_better: bool) -> Verdict {
    match (interval.0 > 1.0, interval.1 < 1.0, smaller_is_better) {
        (true, _, false) | (_, true, true) => Verdict::Better,
        (true, _, true) | (_, true, false) => Verdict::Worse,
        _ => Verdict::Open,
    }
}

/// Verdict of a ratio's interval with a threshold of 5 %, and a limit of its width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// The whole interval is above 1.
    Won,
    /// The whole interval is below 1.
    Lost,
    /// The interval contains 1 and lies within 5 % of it.
    Level,
    /// The interval contains 1 and reaches further, or is wider than the limit.
    Open,
}

/// Returns half the width of an interval, in per cent of the ratio.
pub(crate) fn half_width_percent(ratio: f64, interval: (f64, f64)) -> f64 {
    if ratio > 0.0 { (interval.1 - interval.0) / 2.0 / ratio * 100.0 } else { f64::INFINITY }
}

/// Difference from 1 that matters.
pub(crate) const MATTERS: f64 = 0.05;

/// Reads the interval of a ratio where larger is better.
pub(crate) fn standing(interval: (f64, f64)) -> Standing {
    match (verdict(interval, false), interval) {
        (Verdict::Better, _) => Standing::Won,
        (Verdict::Worse, _) => Standing::Lost,
        (Verdict::Open, (low, high)) if low >= 1.0 - MATTERS && high <= 1.0 + MATTERS => Standing::Level,
        (Verdict::Open, _) => Standing::Open,
    }
}

impl Standing {
    /// Returns the verdict in one word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Lost => "lost",
            Self::Level => "level",
            Self::Open => "open",
        }
    }
}

/// Selects from two series of runs, each with the machine's state, the runs in the state that both had most
/// often. Returns them and the state. `None` if no state has at least two runs of each series, because then
/// they are not comparable.
pub(crate) fn of_equal_state<S: PartialEq + Copy>(
    subject: &[(f64, S)],
    reference: &[(f64, S)],
    states: &[S],
) -> Option<(Vec<f64>, Vec<f64>, S)> {
    let of = |runs: &[(f64, S)], state: S| -> Vec<f64> {
        runs.iter().filter(|(_, s)| *s == state).map(|(value, _)| *value).collect()
    };
    let (state, subject, reference) = states
        .iter()
        .map(|&state| (state, of(subject, state), of(reference, state)))
        .max_by_key(|(_, s, r)| s.len().min(r.len()))?;
    (subject.len().min(reference.len()) >= 2).then_some((subject, reference, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_know_on_which_side_good_is() {
        assert_eq!(verdict((1.1, 2.0), false), Verdict::Better);
        assert_eq!(verdict((1.1, 2.0), true), Verdict::Worse);
        assert_eq!(verdict((0.5, 0.9), true), Verdict::Better);
        assert_eq!(verdict((0.9, 1.1), false), Verdict::Open);
    }

    #[test]
    fn level_is_an_interval_that_is_narrow_and_holds_1() {
        assert_eq!(standing((1.01, 1.02)), Standing::Won);
        assert_eq!(standing((0.97, 1.04)), Standing::Level);
        assert_eq!(standing((0.90, 1.04)), Standing::Open);
        assert_eq!(standing((0.50, 0.99)), Standing::Lost);
    }

    #[test]
    fn only_runs_of_the_commonest_common_state_compare() {
        let subject = [(1.0, 'f'), (2.0, 's'), (3.0, 's'), (4.0, 's'), (9.0, '?')];
        let reference = [(5.0, 's'), (6.0, 's'), (7.0, 'f'), (9.0, '?'), (9.0, '?')];
        let (s, r, state) = of_equal_state(&subject, &reference, &['f', 's']).unwrap();
        assert_eq!((s, r, state), (vec![2.0, 3.0, 4.0], vec![5.0, 6.0], 's'));
        assert_eq!(of_equal_state(&subject[..1], &reference, &['f', 's']), None);
    }

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }

    #[test]
    fn interval_holds_the_ratio_and_is_the_same_every_time() {
        let subject = [8.0, 9.0, 10.0, 11.0, 12.0];
        let reference = [1.0, 1.1, 0.9, 1.0, 1.05];
        let (low, high) = ratio_interval(&subject, &reference);
        assert!(low <= 10.0 && 10.0 <= high && low >= 8.0 / 1.1 && high <= 12.0 / 0.9);
        assert_eq!(ratio_interval(&subject, &reference), (low, high));
    }
}
