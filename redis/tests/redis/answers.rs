//! What callers are told, by a server that works.

use std::{sync::Arc, time::Duration};

use tollgate::{Log, Nanos, Reason, Rule};
use tollgate_redis::{By, Limiter, Store};
use tollgate_redis_server::Server;

use crate::support::{HOUR, MINUTE, SECOND, admitted, manager, name, patient};

const STORES: [Store; 5] =
    [Store::Ring, Store::Zset, Store::Counter { buckets: 16 }, Store::TwoWindow, Store::Gcra { burst: None }];

#[tokio::test]
async fn every_store_admits_the_limit_and_says_what_is_left() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter =
            patient(Limiter::builder(name, 5, HOUR).store(store)).build(manager(&server.url())).unwrap();
        limiter.verify().await.unwrap();
        let first = limiter.check("a", 2).await.unwrap();
        let quota = first.decision.unwrap();
        assert_eq!((first.by, quota.limit, quota.remaining, quota.rule), (By::Redis, 5, 3, 0), "{store:?}");
        assert!(quota.next_after > Nanos::ZERO && quota.next_after <= quota.reset_after);
        assert_eq!(admitted(&limiter, "a", 10).await, 3, "{store:?}");
        let denied = limiter.check("a", 1).await.unwrap().decision.unwrap_err();
        assert!(
            matches!(denied.reason, Reason::Limit { retry_after } if retry_after > Nanos::ZERO),
            "{denied:?}"
        );
        assert_eq!(denied.quota.remaining, 0);
        assert_eq!(admitted(&limiter, "b", 10).await, 5, "another id has a limit of its own");
    }
    assert!(server.immortal().await.is_empty());
}

#[tokio::test]
async fn peek_and_refusals_change_nothing_and_reset_forgets() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter =
            patient(Limiter::builder(&name, 5, HOUR).store(store)).build(manager(&server.url())).unwrap();
        assert_eq!(limiter.peek("a", 5).await.unwrap().decision.unwrap().remaining, 5);
        assert!(server.ask::<Vec<String>>(&["KEYS", "*"]).await.is_empty(), "a peek makes no key");
        assert!(limiter.try_acquire("a", 4).await.unwrap().admitted);
        let key = format!("tollgate:{{a}}:{name}");
        let before: Vec<u8> = server.ask(&["DUMP", &key]).await;
        assert!(!limiter.try_acquire("a", 2).await.unwrap().admitted);
        assert!(limiter.peek("a", 2).await.unwrap().decision.is_err());
        assert!(limiter.try_acquire("a", 0).await.unwrap().admitted);
        assert!(limiter.check("a", 0).await.unwrap().decision.is_ok());
        assert_eq!(before, server.ask::<Vec<u8>>(&["DUMP", &key]).await, "{store:?}");
        limiter.reset("a").await.unwrap();
        assert_eq!(admitted(&limiter, "a", 9).await, 5, "{store:?}");
        limiter.reset("a").await.unwrap();
    }
}

#[tokio::test]
async fn parts_are_granted_by_a_call_of_their_own() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter =
            patient(Limiter::builder(name, 10, HOUR).store(store)).build(manager(&server.url())).unwrap();
        let grant = limiter.acquire_up_to("a", 7).await.unwrap();
        assert_eq!((grant.granted, grant.retry_after), (7, None), "{store:?}");
        let grant = limiter.acquire_up_to("a", 1_000).await.unwrap();
        assert!(grant.granted == 3 && grant.retry_after.is_some(), "{store:?} {grant:?}");
        let grant = limiter.acquire_up_to("b", u64::MAX).await.unwrap();
        assert!(grant.granted == 10 && grant.retry_after.is_some(), "{store:?} {grant:?}");
        let grant = limiter.acquire_up_to("a", 1).await.unwrap();
        assert!(grant.granted == 0 && grant.retry_after.is_some(), "{store:?} {grant:?}");
    }
}

#[tokio::test]
async fn several_limits_are_taken_together_or_not_at_all() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter = patient(Limiter::builder(format!("{name}.hour"), 10, HOUR).rule(
            format!("{name}.day"),
            4,
            24 * HOUR,
        ))
        .store(store)
        .build(manager(&server.url()))
        .unwrap();
        assert_eq!(limiter.check("a", 3).await.unwrap().decision.unwrap().rule, 1);
        let before = limiter.stats().calls;
        let denied = limiter.check("a", 2).await.unwrap().decision.unwrap_err();
        assert_eq!((denied.quota.rule, denied.quota.limit, denied.quota.remaining), (1, 4, 1), "{store:?}");
        assert_eq!(limiter.stats().calls, before + 1, "one call for all limits");
        assert_eq!(admitted(&limiter, "a", 5).await, 1, "the refusal charged neither");
        let never = limiter.check("a", 5).await.unwrap();
        assert_eq!((never.decision.unwrap_err().reason, never.by), (Reason::Never, By::Rule));
    }
}

#[tokio::test]
async fn limits_change_while_in_use() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter = patient(Limiter::builder(name, 5, HOUR).store(store))
            .cache_refusals(SECOND)
            .build(manager(&server.url()))
            .unwrap();
        assert_eq!(admitted(&limiter, "a", 9).await, 5);
        limiter.set_limits(&[8]).unwrap();
        if !matches!(store, Store::Gcra { .. }) {
            assert_eq!(admitted(&limiter, "a", 9).await, 3, "{store:?}: a raise counts what was used");
        }
        limiter.set_limits(&[0]).unwrap();
        let answer = limiter.check("a", 1).await.unwrap();
        assert_eq!(answer.decision.unwrap_err().reason, Reason::Never);
        limiter.set_limits(&[3]).unwrap();
        assert_eq!(admitted(&limiter, "a", 9).await, 0, "{store:?}: lowered below the use");
        assert_eq!(limiter.rules()[..], [Rule::new(3, HOUR)]);
        assert!(limiter.set_limits(&[1, 2]).is_err() && limiter.set_limits(&[u64::MAX]).is_err());
    }
}

#[tokio::test]
async fn windows_change_while_in_use() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let limiter = patient(Limiter::builder(name, 5, HOUR).store(store)).cache_refusals(MINUTE);
        let limiter = limiter.build(manager(&server.url())).unwrap();
        assert_eq!(admitted(&limiter, "a", 9).await, 5);
        limiter.set_rules(&[Rule::new(5, 24 * HOUR)]).unwrap();
        // A bucket keeps its time until it is empty: an hour, in which a day drips a twenty-fourth of it.
        let left = if matches!(store, Store::Gcra { .. }) { 4 } else { 0 };
        assert_eq!(admitted(&limiter, "a", 9).await, left, "{store:?}: a longer window holds what is there");
        limiter.set_rules(&[Rule::new(5, Duration::from_millis(1))]).unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        if !matches!(store, Store::Gcra { .. } | Store::Counter { .. } | Store::TwoWindow) {
            assert!(admitted(&limiter, "a", 1).await == 1, "{store:?}: a shorter window holds at once");
        }
        assert_eq!(limiter.rules()[..], [Rule::new(5, Duration::from_millis(1))]);
        let odd = Rule::new(5, Duration::from_nanos(1_500));
        assert!(limiter.set_rules(&[odd]).is_err() && limiter.set_rules(&[]).is_err());
    }
    let leased = patient(Limiter::builder("leased", 5, HOUR)).lease(MINUTE, 5);
    let leased = leased.build(manager(&server.url())).unwrap();
    let error = leased.set_rules(&[Rule::new(5, SECOND)]).unwrap_err().to_string();
    assert_eq!(error, "lease 60s is not between 1us and 1s");
}

/// What the script takes longer for than the window lasts is answered all the same.
#[tokio::test]
async fn a_call_that_outlasts_its_window() {
    let server = Server::start().await;
    let limit = 1 << 20;
    let limiter = patient(Limiter::builder("api", limit, Duration::from_micros(1)));
    let limiter = limiter.build(manager(&server.url())).unwrap();
    let quota = limiter.check("a", limit).await.unwrap().decision.unwrap();
    assert_eq!((quota.remaining, quota.reset_after), (0, Nanos::from_micros(1)));
}

/// Deployed one instance after the other with another window under the old name: a ring keeps every unit for both.
#[tokio::test]
async fn two_windows_on_one_ring() {
    let server = Server::start().await;
    let short = patient(Limiter::builder("api", 5, Duration::from_millis(200)));
    let long = patient(Limiter::builder("api", 20, HOUR));
    let (short, long) =
        (short.build(manager(&server.url())).unwrap(), long.build(manager(&server.url())).unwrap());
    assert_eq!(admitted(&long, "a", 1).await, 1);
    let mut total = 1;
    for _ in 0..4 {
        total += admitted(&short, "a", 3).await;
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(
        admitted(&long, "a", 30).await,
        20 - total,
        "what the short window let go counts in the long one"
    );
    assert!(server.ask::<i64>(&["PTTL", "tollgate:{a}:api"]).await > 3_600_000);
}

#[tokio::test]
async fn the_machine_s_own_capacity_is_asked_first_and_named() {
    let server = Server::start().await;
    let own = tollgate::Limiter::precise(Log::builder(3, HOUR).build().unwrap());
    let limiter =
        patient(Limiter::builder("api", 100, HOUR)).capacity(own).build(manager(&server.url())).unwrap();
    assert_eq!(admitted(&limiter, "a", 2).await, 2);
    assert_eq!(admitted(&limiter, "b", 2).await, 1);
    let answer = limiter.check("c", 1).await.unwrap();
    assert_eq!((answer.by, answer.decision.unwrap_err().quota.limit), (By::Capacity, 3));
    assert_eq!(limiter.stats().refused(By::Capacity), 2);
}

/// The user's own settings: database, user, password; a prefix in every key.
#[tokio::test]
async fn the_client_s_settings_are_the_user_s() {
    let server = Server::start().await;
    let _: () = server.ask(&["ACL", "SETUSER", "limits", "on", ">secret", "~mine:*", "+@all"]).await;
    let url = format!("{}?db=3&user=limits&pass=secret", server.url());
    let limiter = patient(Limiter::builder("api", 5, HOUR)).prefix("mine").build(manager(&url)).unwrap();
    limiter.verify().await.unwrap();
    assert_eq!(admitted(&limiter, "a", 9).await, 5);
    let mut connection = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
    let keys: Vec<String> =
        redis::cmd("SCAN").arg(0).query_async::<(u64, _)>(&mut connection).await.unwrap().1;
    assert_eq!(keys, ["mine:{a}:api"]);
    let foreign = patient(Limiter::builder("api", 5, HOUR))
        .build(manager(&format!("{}?user=limits&pass=secret", server.url())))
        .unwrap();
    assert!(foreign.verify().await.is_err(), "no right to other keys");
}

/// Fifty callers on several connections, thousands of calls on one key: exactly the limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_never_get_more_than_the_limit() {
    let server = Server::start().await;
    for store in STORES {
        let name = name(store);
        let build = || {
            let limiter = patient(Limiter::builder(&name, 1_000, HOUR).store(store));
            Arc::new(limiter.build(manager(&server.url())).unwrap())
        };
        let limiters: Vec<_> = (0..5).map(|_| build()).collect();
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..50usize {
            let limiter = limiters[caller % limiters.len()].clone();
            callers.spawn(async move { admitted(&limiter, "a", 30).await });
        }
        let mut total = 0;
        while let Some(done) = callers.join_next().await {
            total += done.unwrap();
        }
        assert_eq!(total, 1_000, "{store:?}");
    }
}

#[tokio::test]
async fn what_can_not_be_built_says_why() {
    let server = Server::start().await;
    let build =
        |builder: tollgate_redis::Builder| builder.build(manager(&server.url())).unwrap_err().to_string();
    let api = |limit, window| Limiter::builder("api", limit, window);
    let us = Duration::from_micros;
    assert_eq!(build(api(1 << 25, SECOND)), "limit or burst 33554432 is above 16777216");
    assert_eq!(
        build(api(1, Duration::from_nanos(1_500))),
        "window 1.5µs is not a whole number of microseconds between 1µs and 1125899906.842624s"
    );
    assert_eq!(
        build(api(1, SECOND).store(Store::Counter { buckets: 0 })),
        "0 buckets are not between 1 and 1000"
    );
    assert_eq!(
        build(api(1, us(5)).store(Store::Counter { buckets: 10 })),
        "10 buckets are not between 1 and 5"
    );
    assert_eq!(build(api(1, SECOND).store(Store::Gcra { burst: Some(0) })), "burst 0 is below 1");
    assert_eq!(
        build(api(1, SECOND).rule("api", 2, MINUTE)),
        "name \"api\" is empty, has a brace, or is given twice"
    );
    assert_eq!(build(api(1, SECOND).prefix("{x}")), "name \"{x}\" is empty, has a brace, or is given twice");
    assert_eq!(build(api(1, SECOND).store(Store::Zset).lease(us(10), 5)), "a lease needs Store::Ring");
    assert_eq!(build(api(1, SECOND).lease(MINUTE, 5)), "lease 60s is not between 1us and 1s");
    assert_eq!(build(api(1, SECOND).deadline(Duration::ZERO)), "deadline 0ns is not between 1us and 3600s");
    assert_eq!(build(api(1, SECOND).coarse(50)), "coarse percentage 50 is not between 100 and 100000");
    let nine = (0..8).fold(api(1, SECOND), |builder, i| builder.rule(format!("r{i}"), 1, SECOND));
    assert_eq!(build(nine), "9 rules are not between 1 and 8");
}
