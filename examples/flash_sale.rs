//! A flash sale: everybody comes in the same second, and scripts come a thousand times.
//!
//! Three layers: the gate before the stock (500 ms), the shop (1 s in 20 buckets), the user (5 in 10 s, of them 3 in 1 s).
//! A limiter shapes the traffic and does not count goods: the stock is an atomic of its own, which never falls below
//! zero.
//!
//! `cargo run --release --example flash_sale` prints who got through. Time is passed in, so it prints the same each time.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tollgate::{ConfigError, Keyed, Layers, Log, Nanos, Window};

const STOCK: u64 = 1_000;
const USERS: u64 = 20_000;
const SCRIPTS: u64 = 20;

struct Shop {
    gate: Window,
    shop: Window,
    users: Keyed<u64>,
    stock: AtomicU64,
}

/// What became of one attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Refused by this layer, from the outside in.
    Refused(usize),
    SoldOut,
    Bought,
}

impl Shop {
    fn open() -> Result<Self, ConfigError> {
        let (second, half) = (Duration::from_secs(1), Duration::from_millis(500));
        let user = Log::builder(5, 10 * second).rule(3, second).max_cost(1).config()?;
        Ok(Self {
            gate: Window::builder(250, half).buckets(10).build()?,
            shop: Window::builder(400, second).buckets(20).build()?,
            users: Keyed::builder(user, USERS).build()?,
            stock: AtomicU64::new(STOCK),
        })
    }

    fn buy(&self, user: u64, now: Nanos) -> Outcome {
        let user = self.users.of(&user);
        match Layers::new([&self.gate, &self.shop, &user]).check_at(1, now) {
            (layer, Err(_)) => Outcome::Refused(layer),
            (_, Ok(_)) => {
                let sold =
                    self.stock.try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                if sold.is_ok() { Outcome::Bought } else { Outcome::SoldOut }
            }
        }
    }
}

/// An attempt: when, and by whom. Scripts are the first users.
fn attempts() -> Vec<(Nanos, u64)> {
    let mut attempts = Vec::new();
    for user in 0..USERS {
        // A person tries at some moment of the first two seconds, and again two seconds later; a script every millisecond.
        let (first, every, times) = match user {
            script if script < SCRIPTS => (script * 50, 1_000, 5_000),
            person => (person * 7_919 % 2_000_000, 2_000_000, 2),
        };
        attempts.extend((0..times).map(|n| (Nanos::from_micros(first + n * every), user)));
    }
    attempts.sort_unstable();
    attempts
}

fn main() -> Result<(), ConfigError> {
    let shop = Shop::open()?;
    let mut rows = [("people", [0_u64; 5]), ("scripts", [0; 5])];
    let attempts = attempts();
    for &(now, user) in &attempts {
        let column = match shop.buy(user, now) {
            Outcome::Refused(layer) => layer,
            Outcome::SoldOut => 3,
            Outcome::Bought => 4,
        };
        rows[usize::from(user < SCRIPTS)].1[column] += 1;
    }
    println!("{} attempts, {STOCK} in stock", attempts.len());
    println!("{:<8} {:>9} {:>9} {:>9} {:>9} {:>9}", "", "gate", "shop", "user", "sold out", "bought");
    for (who, [gate, shop, user, sold_out, bought]) in rows {
        println!("{who:<8} {gate:>9} {shop:>9} {user:>9} {sold_out:>9} {bought:>9}");
    }
    let bought: u64 = rows.iter().map(|(_, row)| row[4]).sum();
    assert_eq!(bought, STOCK - shop.stock.load(Ordering::Relaxed));
    // Five each at most: the scripts' thousand tries were worth no more.
    assert!(rows[1].1[4] <= 5 * SCRIPTS);
    Ok(())
}
