//! Several transfers, judged together.

use super::features::Features;
use super::model::Model;
use super::suspect::{Suspect, Suspicion};

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

/// Exponent of the shares of the time, less one, where transfers with a quarter of it or more differ: what
/// has the largest share is more certain than the share is large (chosen here: the likelihood of the fitted
/// families is highest at 1 at the phone, 0.6 in late captures, 0.4 at the server).
const SHARPER: f64 = 0.5;
/// A suspect is named if it is first in transfers with this share of the time (chosen here).
const LEADS: f64 = 0.5;

impl Model {
    /// Probabilities of what limited several transfers, in descending order: by each suspect's expected
    /// share of their time; and the suspect to be named, if it is first in most of it, and its share enough
    /// for the transfers that name it. Only then the shares are raised. A transfer without probabilities
    /// counts as [`Suspect::Other`]; there are none if no transfer has any.
    #[must_use]
    pub fn judge_together(each: &[JudgedTransfer<'_>]) -> (Vec<Suspicion>, Option<Suspicion>) {
        if let [one] = each {
            return (one.suspects.to_vec(), one.named);
        }
        if each.iter().all(|one| one.suspects.is_empty()) {
            return (Vec::new(), None);
        }
        let total: f64 = each.iter().map(JudgedTransfer::weight).sum();
        let unknown = [Suspicion { suspect: Suspect::Other, probability: 1.0 }];
        let mut all = Suspect::ALL.map(|suspect| Suspicion { suspect, probability: 0.0 });
        // The time of the transfers in which each is first.
        let mut leads = Suspect::ALL.map(|suspect| (suspect, 0.0));
        for one in each {
            let own = if one.suspects.is_empty() { &unknown } else { one.suspects };
            for Suspicion { suspect, probability } in own {
                let shares = all.iter_mut().filter(|share| share.suspect == *suspect);
                shares.for_each(|share| share.probability += probability * one.weight() / total);
            }
            let first = one.suspects.first().map(|one| one.suspect);
            let own = leads.iter_mut().filter(|(suspect, _)| Some(*suspect) == first);
            own.for_each(|(_, time)| *time += one.weight());
        }
        all.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        // A sum of parts may be a last digit less than the whole.
        let share = Suspicion { probability: all[0].probability + 1e-9, ..all[0] };
        let is_of = |suspect: Suspect| suspect == share.suspect;
        let leading = leads.iter().any(|(one, time)| is_of(*one) && *time >= LEADS * total);
        let mut naming = each.iter().filter(|one| one.named.is_some_and(|one| is_of(one.suspect)));
        let is_named = leading
            && naming.clone().next().is_some()
            && naming.all(|one| one.features.is_some_and(|of| Self::names(of, &share)));
        if !is_named {
            return (all.to_vec(), None);
        }
        let judged: f64 = leads.iter().map(|(_, time)| time).sum();
        let most = leads.iter().map(|(_, time)| *time).fold(0.0, f64::max);
        let exponent = 1.0 + (2.0 * (judged - most) / total).min(SHARPER);
        all.iter_mut().for_each(|one| one.probability = one.probability.powf(exponent));
        let sum: f64 = all.iter().map(|one| one.probability).sum();
        all.iter_mut().for_each(|one| one.probability /= sum);
        (all.to_vec(), Some(all[0]))
    }
}

impl JudgedTransfer<'_> {
    /// Its weight among others.
    fn weight(&self) -> f64 {
        self.ns.max(1) as f64
    }
}
