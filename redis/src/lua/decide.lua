-- Opens every key, judges all limits at one time, takes from all or from none. Replies, packed: granted, retry, time judged,
-- rule, and what the report asks for: AHEAD until one more fits; FIGURES left, until more is left, until nothing is charged.
-- All or nothing and no report: a number, units granted or the wait made negative; packing costs as much as a command.
local limits, rules = {}, {}
for i, key in ipairs(KEYS) do
  local a, b, c = struct.unpack('>I8I8I8', ARGV[1], 4 + i * 24)
  limits[i], rules[i] = a, open(key, a, b, c)
end
assert(cost <= math.min(unpack(limits)), 'cost above the limit')

-- How long until m more fit every limit, and the limit that takes longest (the first of equals).
local function wait(m)
  local longest, which = 0, 1
  for i, rule in ipairs(rules) do
    local w = rule.wait(m)
    if w > longest then longest, which = w, i end
  end
  return longest, which
end

local granted, retry, which = cost, 0, 1
if cost > 0 then retry, which = wait(cost) end
if retry > 0 then
  granted = 0
  if mode == PART then
    local hi = cost - 1
    while granted < hi do
      local mid = math.ceil((granted + hi) / 2)
      if wait(mid) == 0 then granted = mid else hi = mid - 1 end
    end
  end
end
if granted > 0 and mode ~= PEEK then
  for _, rule in ipairs(rules) do rule.take(granted) end
end
if retry > 0 and mode == PART then retry, which = wait(1) end

if report == NOTHING and mode ~= PART then return retry > 0 and -retry or granted end
if report == NOTHING then return struct.pack('>I8I8I8I8', granted, retry, eff, which - 1) end
if report == AHEAD then
  local ahead = math.min(unpack(limits)) > 0 and wait(1) or 0
  return struct.pack('>I8I8I8I8I8', granted, retry, eff, which - 1, ahead)
end

local left, tightest = math.huge, 1
for i, rule in ipairs(rules) do
  local free = rule.free()
  if free < left then left, tightest = free, i end
end
local next_after, reset_after, grows = 0, 0, true
for i, rule in ipairs(rules) do
  reset_after = math.max(reset_after, rule.wait(limits[i]))
  if left + 1 > limits[i] then grows = false else next_after = math.max(next_after, rule.wait(left + 1)) end
end
return struct.pack('>I8I8I8I8I8I8I8', granted, retry, eff, (retry > 0 and which or tightest) - 1,
  left, grows and next_after or 0, reset_after)
