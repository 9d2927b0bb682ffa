// Regions as tollgate.hpp has them: owners that go and leave the region, limiters of their own, keys.
#include <tollgate/tollgate.hpp>

#include "../c/expect.h"

#include <cstdlib>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <utility>

using tollgate::config;
using tollgate::limiter;
using tollgate::shm;
using tollgate::shm_config;
using namespace std::chrono;

static_assert(!std::is_copy_constructible<shm>::value && !std::is_copy_assignable<shm>::value, "owned once");
static_assert(std::is_nothrow_move_constructible<shm>::value && std::is_nothrow_move_assignable<shm>::value, "moves");
static_assert(noexcept(shm().try_acquire("k")) && noexcept(shm().get(0)), "nothing is thrown");

int main() {
    const std::string path = "/dev/shm/tollgate-regions-test-" + std::to_string(getpid());
    const auto of = shm_config(config(TOLLGATE_LOG, 5, seconds(1)).clock(TOLLGATE_CLOCK_CALLER), 2, 20)
                        .flags(TOLLGATE_REFUSE_WHEN_FULL)
                        .mode(0640);
    const auto now = seconds(7);
    shm none;
    EXPECT(!none && none.error() == TOLLGATE_E_NULL && !none.try_acquire_at("k", 0, now) && none.count() == 0);
    EXPECT(none.check_at("k", 1, now).error() == TOLLGATE_E_NULL && none.get(0).error() == TOLLGATE_E_NULL);
    EXPECT(shm::attach(path.c_str(), of).error() == TOLLGATE_E_SYS);

    auto made = shm::create(path.c_str(), of);
    EXPECT(made && made.error() == TOLLGATE_OK && made.raw() != nullptr && made.count() == 2 && made.capacity() == 42);
    const auto found = shm::open(path.c_str(), of);
    EXPECT(found.get(2).error() == TOLLGATE_E_INVALID);
    {
        const limiter ours = made.get(1), theirs = found.get(1);
        EXPECT(ours.try_acquire_at(5, now) && !theirs.try_acquire_at(1, now));
        EXPECT(theirs.check_at(1, now).retry_after() == seconds(1));
    }
    EXPECT(made.try_acquire_at("alice", 4, now) && found.check_at(path, 1, now) && !found.peek_at("alice", 2, now));
    EXPECT(found.size() == 2 && found.check("alice").error() == TOLLGATE_E_CLOCK && !found.try_acquire("alice"));
    EXPECT(found.peek("alice").error() == TOLLGATE_E_CLOCK);
    std::uint64_t used = 0;
    EXPECT(found.usage_at("alice", 0, now, used) == TOLLGATE_OK && used == 4);

    shm moved = std::move(made);
    EXPECT(moved && !made && made.error() == TOLLGATE_E_NULL);
    made = std::move(moved);
    EXPECT(made && !moved);
    made = shm();
    const auto again = shm::attach(path.c_str(), of);
    EXPECT(again && !again.try_acquire_at("alice", 2, now) && again.try_acquire_at("alice", 1, now));

    tollgate_shm_info_t info;
    EXPECT(tollgate::shm_inspect(path.c_str(), info) == TOLLGATE_OK && info.bytes == of.size());
    EXPECT(tollgate::shm_unlink(path.c_str()) == TOLLGATE_OK && tollgate::shm_unlink(path.c_str()) == TOLLGATE_E_SYS);

    int fd = -1;
    const auto nameless = shm::create_memfd("regions", of, fd);
    EXPECT(nameless && shm::open_fd(fd, of).try_acquire_at("bob", 5, now) && !nameless.try_acquire_at("bob", 1, now));
    EXPECT(close(fd) == 0 && shm::open_fd(fd, of).error() == TOLLGATE_E_SYS);

    void *memory = nullptr;
    EXPECT(posix_memalign(&memory, tollgate_align(), of.size()) == 0);
    std::memset(memory, 0, of.size());
    EXPECT(shm::place(memory, of.size(), of).try_acquire_at("carol", 5, now));
    EXPECT(!shm::place(memory, of.size(), of).try_acquire_at("carol", 1, now));
    EXPECT(shm::place(memory, 1, of).error() == TOLLGATE_E_SIZE);
    std::free(memory);

    auto may_change = of;
    may_change.flags(TOLLGATE_LIVE);
    tollgate_rule_t rules[TOLLGATE_MAX_RULES];
    std::uint32_t count = 0;
    const auto live = shm::create_memfd("live", may_change, fd), other = shm::open_fd(fd, may_change);
    EXPECT(close(fd) == 0 && live.try_acquire_at("dave", 2, now) && other.set_rule(3, seconds(2)) == TOLLGATE_OK);
    EXPECT(live.try_acquire_at("dave", 1, now) && !live.try_acquire_at("dave", 1, now));
    EXPECT(live.get_rules(rules, count) == TOLLGATE_OK && count == 1 && rules[0].limit == 3);
    EXPECT(live.set_rules(rules, 0) == TOLLGATE_E_INVALID && nameless.set_rules(rules, 1) == TOLLGATE_E_UNSUPPORTED);
    return 0;
}
