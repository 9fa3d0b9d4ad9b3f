//! Cell load in simulated cells (ns-3), whose load is known.

use super::*;

/// The simulated cells' errors: full-power data, one port.
pub(super) fn simulated(shared: &Path) -> anyhow::Result<()> {
    let root = shared.join("data/ns3");
    let mut folders: Vec<_> = std::fs::read_dir(&root)
        .with_context(|| format!("reading {}", root.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("rsrq_model.csv.gz").is_file())
        .collect();
    folders.sort();
    println!("Simulated cells (ns-3), {} runs; mean absolute error in points", folders.len());
    println!("(reported, not barred)\n");
    let titles = [
        (Readings::Means, "RSRQ is a mean of 40 ms"),
        (Readings::Subframes, "RSRQ is of a subframe, as in logs"),
    ];
    for (readings, title) in titles {
        let (mut all, mut unknown) = (Vec::new(), 0);
        for folder in &folders {
            let (errors, no_value) = simulated_run(folder, readings)?;
            all.extend(errors);
            unknown += no_value;
        }
        print_errors(title, &all);
        println!("{unknown} windows cannot be estimated\n");
    }
    Ok(())
}

/// Definition of a simulated RSRQ.
#[derive(Clone, Copy, PartialEq)]
enum Readings {
    /// The 40 ms that start there: as in `rsrq_model.csv.gz`.
    Means,
    /// That subframe, with the same definition, from the same SINR and the true PRBs: a
    /// log's reading belongs to a subframe.
    Subframes,
}

/// TTIs averaged in a simulated reading.
const READING_TTIS: i64 = 40;

fn simulated_run(folder: &Path, readings: Readings) -> anyhow::Result<(Vec<WindowError>, usize)> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let grants = airmile_decode::table::GrantReader::new(
        open(&folder.join("grants.csv.gz"))?,
        airmile_model::Clock::Modem,
    )?;
    let mut records: Vec<Record> = grants.filter_map(Result::ok).map(Record::Grant).collect();
    let n_prb = records
        .iter()
        .find_map(|record| match record {
            Record::Grant(grant) => grant.n_prb_cell,
            _ => None,
        })
        .unwrap_or(50);
    let mut load = Vec::new();
    for row in rows(&folder.join("cell.csv.gz"))? {
        let [tti, n_tti, prb, ..] = row[..] else { continue };
        load.resize(load.len().max(tti as usize), 0.0);
        load.extend(std::iter::repeat_n(prb / f64::from(n_prb), n_tti as usize));
    }
    for row in rows(&folder.join("rsrq_model.csv.gz"))? {
        let [t_s, rsrp_dbm, sinr_db, _, mean_rsrq_db] = row[..] else { continue };
        let tti = (t_s * 1_000.0).round() as i64;
        let rsrq_db = match readings {
            Readings::Means => mean_rsrq_db,
            // One port: 2 reference elements of 12, noise on all.
            Readings::Subframes => {
                let load = load.get(tti as usize).copied().unwrap_or(0.0);
                let noise = 12.0 * 10f64.powf(-sinr_db / 10.0);
                -10.0 * (2.0 + 10.0 * load + noise).log10()
            }
        };
        records.push(reading(tti, rsrp_dbm, sinr_db, rsrq_db).into());
        load.resize(load.len().max((tti + READING_TTIS) as usize), 0.0);
    }
    records.sort_by_key(|record| tti_of(record).unwrap_or(0));
    records.insert(0, one_port(n_prb));
    let truth = TrueLoad { first: 0, load };
    let n_tti = if readings == Readings::Means { READING_TTIS } else { 1 };
    let reading = |tti: i64| Some(mean((tti..tti + n_tti).filter_map(|tti| truth.at(tti))));
    let workload = name.split('_').next().unwrap_or_default().to_owned();
    Ok(errors(&workload, &records, &truth, reading))
}

fn one_port(n_prb: u16) -> Record {
    Record::CellInfo(airmile_model::CellInfo {
        at: None,
        timing_segment: 0,
        cell: 0,
        pci: None,
        earfcn: None,
        n_prb_dl: Some(n_prb),
        n_prb_ul: None,
        n_tx_antennas: Some(1),
        band: None,
        source: "table",
    })
}

fn reading(tti: i64, rsrp_dbm: f64, sinr_db: f64, rsrq_db: f64) -> Measurement {
    let [rsrp_dbm, snr_db, rsrq_db] = [rsrp_dbm, sinr_db, rsrq_db].map(|x| Some(x as f32));
    Measurement {
        at: None,
        position: Position::lte(tti),
        earfcn: 0,
        pci: 1,
        rsrp_rx0_dbm: rsrp_dbm,
        rsrp_rx1_dbm: None,
        rsrp_dbm,
        rsrq_rx0_db: rsrq_db,
        rsrq_rx1_db: None,
        rsrq_db,
        rssi_rx0_dbm: None,
        rssi_rx1_dbm: None,
        rssi_dbm: None,
        snr_rx0_db: snr_db,
        snr_rx1_db: None,
    }
}

fn rows(path: &Path) -> anyhow::Result<Vec<Vec<f64>>> {
    let numbers = |line: std::io::Result<String>| -> anyhow::Result<Vec<f64>> {
        Ok(line?.split(',').map(str::parse).collect::<Result<_, _>>()?)
    };
    let lines = BufReader::new(open(path)?).lines().skip(1);
    lines.map(numbers).collect::<anyhow::Result<_>>().with_context(|| path.display().to_string())
}
