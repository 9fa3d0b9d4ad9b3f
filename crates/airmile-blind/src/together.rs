//! Several transfers, judged together.

use super::features::Features;
use super::model::{Model, Suspect, Suspicion};

/// One of several transfers that are judged together.
#[derive(Debug, Clone, Copy)]
pub struct JudgedTransfer<'a> {
    /// How long it took, in nanoseconds.
    pub ns: i64,
    /// `None` if there is no evidence for it.
    pub features: Option<&'a Features>,
    /// Its own probabilities, in descending order.
    pub suspects: &'a [Suspicion],
    /// What is named for it.
    pub named: Option<Suspicion>,
}

/// Exponent of the shares of the time if transfers differ: what has the largest share is more certain than
/// the share is large (chosen here: the likelihood of the fitted families is highest at 2 at the phone, 1.6
/// in late captures, 1.4 at the server).
const MOST_OF_TIME: f64 = 1.5;

impl Model {
    /// Probabilities of what limited several transfers, in descending order: by each suspect's expected
    /// share of their time; and the suspect to be named, if it is first, one of them names it, and it is
    /// probable enough for the largest. A transfer without probabilities counts as [`Suspect::Other`];
    /// there are none if no transfer has any.
    #[must_use]
    pub fn judge_together(each: &[JudgedTransfer<'_>]) -> (Vec<Suspicion>, Option<Suspicion>) {
        if each.iter().all(|one| one.suspects.is_empty()) {
            return (Vec::new(), None);
        }
        let total: f64 = each.iter().map(|one| one.ns.max(1) as f64).sum();
        let unknown = [Suspicion { suspect: Suspect::Other, probability: 1.0 }];
        let mut all = Suspect::ALL.map(|suspect| Suspicion { suspect, probability: 0.0 });
        for one in each {
            let own = if one.suspects.is_empty() { &unknown } else { one.suspects };
            for Suspicion { suspect, probability } in own {
                let shares = all.iter_mut().filter(|share| share.suspect == *suspect);
                shares
                    .for_each(|all| all.probability += probability * one.ns.max(1) as f64 / total);
            }
        }
        all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        let [Suspicion { suspect, .. }, ..] = all;
        let is_first = |one: &Suspicion| one.suspect == suspect;
        if !each.iter().all(|one| one.suspects.first().is_some_and(is_first)) {
            all.iter_mut().for_each(|one| one.probability = one.probability.powf(MOST_OF_TIME));
            let sum: f64 = all.iter().map(|one| one.probability).sum();
            all.iter_mut().for_each(|one| one.probability /= sum);
        }
        let [first, ..] = all;
        let of = each.iter().filter_map(|one| one.features).max_by_key(|of| of.bytes);
        let is_named = each.iter().any(|one| one.named.is_some_and(|named| is_first(&named)))
            && of.is_some_and(|of| Self::names(of, &first));
        (all.to_vec(), is_named.then_some(first))
    }
}
