# Reductions over nodes in many more chunks than a lane has under way, and than there are tags.
nodes.least_message_bytes = 4K
nodes.most_message_bytes = 4K
