// A thread pool whose jobs call a service that takes no more than so many requests in any window. The workers share one
// limiter as it is: no lock around it, and whoever is refused sleeps as long as the limiter says.
//
//   c++ -std=c++14 -pthread thread_pool.cpp $(pkg-config --cflags --libs tollgate) -o thread_pool && ./thread_pool
//
// At the end it looks at the time: so many requests cannot have been made in fewer windows than the limit allows.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <tollgate/tollgate.hpp>

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr unsigned workers = 4;
constexpr unsigned jobs = 100;
constexpr unsigned limit = 25;
constexpr milliseconds window{100};

// Runs jobs on threads of its own; its end waits for all of them.
class Pool {
public:
    explicit Pool(unsigned threads) {
        for (unsigned i = 0; i < threads; i++) {
            threads_.emplace_back([this] { work(); });
        }
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        for (auto &thread : threads_) {
            thread.join();
        }
    }

    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    void submit(std::function<void()> job) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            queue_.push_back(std::move(job));
        }
        changed_.notify_one();
    }

private:
    void work() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
            if (queue_.empty()) {
                return;
            }
            auto job = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            job();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> queue_;
    std::vector<std::thread> threads_;
    bool closed_ = false;
};

// Waits for a permit. False if the limiter cannot give one, ever.
bool wait_for_permit(const tollgate::limiter_ref &limiter, std::atomic<unsigned> &waits) {
    for (;;) {
        auto decision = limiter.check();
        if (decision) {
            return true;
        }
        if (decision.status() != TOLLGATE_REFUSED) {
            return false;
        }
        waits++;
        std::this_thread::sleep_for(decision.retry_after());
    }
}

} // namespace

int main() {
    auto config = tollgate::config(TOLLGATE_LOG, limit, window).clock(TOLLGATE_CLOCK_MONOTONIC).max_cost(1);
    auto limiter = tollgate::limiter::create(config);
    if (!limiter) {
        std::fprintf(stderr, "thread_pool: %s\n", tollgate_strerror(limiter.error()));
        return 1;
    }
    std::atomic<unsigned> served{0}, waits{0};
    auto start = steady_clock::now();
    {
        Pool pool(workers);
        for (unsigned job = 0; job < jobs; job++) {
            pool.submit([&] {
                if (wait_for_permit(limiter, waits)) {
                    served++; // here the service would be called
                }
            });
        }
    }
    auto took = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
    std::printf("thread_pool: %u requests by %u workers in %d ms, %u waits\n", served.load(), workers,
                static_cast<int>(took.count()), waits.load());
    return served == jobs && waits > 0 && took >= (jobs / limit - 1) * window ? 0 : 1;
}
