-- KEYS[1]: instances, scored by the time of their last beat. ARGV: this instance, how long a silent one is counted (us).
-- Replies this instance's place among the names of all, and their number.
local t = redis.call('TIME')
local now, life = t[1] * 1000000 + t[2], tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - life)
redis.call('PEXPIRE', KEYS[1], math.ceil(life / 1000) + 1)
local before, all = 0, redis.call('ZRANGE', KEYS[1], 0, -1)
for _, name in ipairs(all) do
  if name < ARGV[1] then before = before + 1 end
end
return { before, #all }
